//! What every command starts from: settings, the client that they describe, and the output.

use giga_api::client::{Client, ClientError, ClientOptions, JobQuery};
use giga_domain::JobId;
use giga_ports::Clock;

use crate::config::Settings;
use crate::exit::CliError;
use crate::output::{Format, Output};
use crate::system::SystemClock;

/// Parts of ids are looked for in so many of the newest jobs: cheap, and what people mean.
const LOOKED_THROUGH: usize = 500;
/// Fewer characters would be a guess.
const SHORTEST_PART: usize = 6;

pub(crate) struct Context {
    pub(crate) settings: Settings,
    pub(crate) output: Output,
}

impl Context {
    pub(crate) fn new(settings: Settings) -> Result<Self, CliError> {
        let wanted = settings.output();
        let format = Format::parse(&wanted.value).ok_or_else(|| {
            CliError::Config(format!(
                "{}: `{}` is not a format; use table, json, jsonl or name",
                wanted.origin, wanted.value
            ))
        })?;
        Ok(Self { settings, output: Output { format, now: SystemClock.now() } })
    }

    pub(crate) fn client(&self) -> Result<Client, CliError> {
        self.client_in(self.settings.product().map(|product| product.value))
    }

    pub(crate) fn client_in(&self, product: Option<String>) -> Result<Client, CliError> {
        let url = self.settings.url();
        let Some(token) = self.settings.token_for(&url)? else {
            return Err(CliError::NoToken { places: self.settings.token_places() });
        };
        let options = ClientOptions {
            url: url.value,
            token: Some(token.secret.reveal().to_owned()),
            product,
            agent: concat!("giga/", env!("CARGO_PKG_VERSION")).to_owned(),
            trust: self.settings.trust()?,
        };
        Ok(Client::new(options)?)
    }

    /// The id of the job that was meant: by its id, by the beginning or end of it, or by its name.
    pub(crate) async fn job_id(&self, client: &Client, meant: &str) -> Result<String, CliError> {
        let upper = meant.to_ascii_uppercase();
        if upper.parse::<JobId>().is_ok() {
            return Ok(upper);
        }
        let named =
            JobQuery { name: Some(meant.to_owned()), limit: Some(LOOKED_THROUGH), ..JobQuery::default() };
        // A name that the coordinator will not even look for is no name.
        let named = match client.jobs(&named).await {
            Err(ClientError::Problem(problem)) if problem.status == 400 => Vec::new(),
            answer => answer?.value.jobs,
        };
        let mut found: Vec<String> =
            named.into_iter().filter(|job| job.name == meant).map(|job| job.id).collect();
        if found.is_empty() && could_be_part_of_id(&upper) {
            let newest = JobQuery { limit: Some(LOOKED_THROUGH), ..JobQuery::default() };
            let newest = client.jobs(&newest).await?.value.jobs.into_iter().map(|job| job.id);
            found = newest.filter(|id| id.ends_with(&upper) || id.starts_with(&upper)).collect();
        }
        match found.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(CliError::NoSuchJob(format!("there is no job `{meant}`"))),
            several => {
                let shown = several.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = if several.len() > 5 { ", …" } else { "" };
                Err(CliError::Usage(format!("`{meant}` matches {} jobs: {shown}{more}", several.len())))
            }
        }
    }
}

fn could_be_part_of_id(upper: &str) -> bool {
    (SHORTEST_PART..26).contains(&upper.len())
        && upper.chars().all(|c| c.is_ascii_alphanumeric() && !matches!(c, 'I' | 'L' | 'O' | 'U'))
}
