//! A browser without a screen: keeps cookies, follows redirects, and fills in the forms of the OpenID provider.

use std::collections::{BTreeMap, HashMap};

use reqwest::header::{ACCEPT, COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Method, StatusCode, Url};

pub(crate) struct Browser {
    http: reqwest::Client,
    /// By host and port.
    jar: HashMap<String, BTreeMap<String, String>>,
    /// Who sits in front of it.
    person: String,
}

/// Where it came to rest.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    pub(crate) text: String,
}

impl Page {
    /// What the page of a coordinator would take from its address.
    pub(crate) fn token(&self) -> Option<String> {
        self.url.fragment()?.strip_prefix("token=").map(str::to_owned)
    }
}

impl Browser {
    pub(crate) fn of(person: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        Self { http: http.build().unwrap(), jar: HashMap::new(), person: person.to_owned() }
    }

    pub(crate) fn cookies(&mut self, url: &str) -> &mut BTreeMap<String, String> {
        let key = Url::parse(url).unwrap().authority().to_owned();
        self.jar.entry(key).or_default()
    }

    /// One step, without going where it leads.
    pub(crate) async fn step(&mut self, url: &Url, form: Option<String>) -> reqwest::Response {
        let method = if form.is_some() { Method::POST } else { Method::GET };
        let mut request = self.http.request(method, url.clone()).header(ACCEPT, "text/html");
        let cookies = self.cookies(url.as_str());
        if !cookies.is_empty() {
            let all: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            request = request.header(COOKIE, all.join("; "));
        }
        if let Some(form) = form {
            request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
        }
        let response = request.send().await.unwrap();
        for line in response.headers().get_all(SET_COOKIE) {
            let (pair, _) = line.to_str().unwrap().split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            let cookies = self.cookies(url.as_str());
            if value.is_empty() {
                cookies.remove(name);
            } else {
                cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        response
    }

    /// Goes on until nothing leads further: signs in and consents where it is asked to. Nobody leaves an address of the page
    /// of a coordinator, which is not loaded.
    pub(crate) async fn open(&mut self, address: &str) -> Page {
        let (mut url, mut form) = (Url::parse(address).unwrap(), None);
        loop {
            let response = self.step(&url, form.take()).await;
            if let Some(to) = response.headers().get(LOCATION) {
                url = url.join(to.to_str().unwrap()).unwrap();
                if url.fragment().is_some() {
                    return Page { url, status: StatusCode::SEE_OTHER, text: String::new() };
                }
                continue;
            }
            let status = response.status();
            let text = response.text().await.unwrap();
            let Some(filled) = self.fill_in(&text) else { return Page { url, status, text } };
            url = url.join(&filled.0).unwrap();
            form = Some(filled.1);
        }
    }

    /// Where the first form of the page goes, and with what.
    fn fill_in(&self, page: &str) -> Option<(String, String)> {
        let (_, form) = page.split_once("<form")?;
        let (form, _) = form.split_once("</form>")?;
        let attribute = |text: &str, name: &str| {
            let (_, rest) = text.split_once(&format!(" {name}=\""))?;
            rest.split_once('"').map(|(value, _)| value.to_owned())
        };
        let mut fields = Url::parse("form:").unwrap();
        for input in form.split("<input").skip(1) {
            let Some(name) = attribute(input, "name") else { continue };
            let value = match name.as_str() {
                "login" => self.person.clone(),
                "password" => "correct horse".to_owned(),
                _ => attribute(input, "value").unwrap_or_default(),
            };
            fields.query_pairs_mut().append_pair(&name, &value);
        }
        Some((attribute(form, "action")?, fields.query().unwrap_or_default().to_owned()))
    }
}
