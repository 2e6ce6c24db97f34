//! The bridge to trackers: an outside item becomes one job, and hears where that job stands.
//!
//! The job knows its item by its idempotency key, so an item has one job while that is kept, whatever its text is by now. What
//! the item says is data: it goes into the body, and decides nothing.

use giga_domain::manifest::TRACKER_KEY;
use giga_domain::{Effect, EffectTarget, Job, JobId, NewEffect, ProductId, limits};
use giga_ports::StoreError;
use giga_ports::effects::TrackerItem;
use serde_json::json;

use super::Effects;
use crate::{Coordinator, Error, FieldProblem, SubmitAnswer, SubmitRequest};

/// The idempotency key of the job that an item becomes.
pub fn tracker_key(tracker: &str, item: &str) -> String {
    format!("{TRACKER_KEY}{tracker}:{item}")
}

/// The tracker and the item that the job was made from.
pub(super) fn tracker_of(job: &Job) -> Option<(String, String)> {
    let (tracker, item) = job.spec.idempotency_key.as_deref()?.strip_prefix(TRACKER_KEY)?.split_once(':')?;
    Some((tracker.to_owned(), item.to_owned()))
}

/// What the title of an item gives as the name of a job: one line that prints.
pub fn job_name(item: &TrackerItem) -> String {
    let printable: String = item.title.chars().map(|c| if is_plain(c) { c } else { ' ' }).collect();
    let name = printable.split_whitespace().collect::<Vec<_>>().join(" ");
    let name: String = name.chars().take(limits::NAME_CHARS).collect();
    if name.is_empty() { item.item.clone() } else { name.trim_end().to_owned() }
}

/// Neither control characters nor those that hide or turn text around.
fn is_plain(c: char) -> bool {
    let hides = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    !c.is_control() && !hides
}

/// What the caller says, the item with its address, and the item's own words.
pub fn tracked_body(message: &str, item: &TrackerItem) -> String {
    let message =
        if message.trim().is_empty() { String::new() } else { format!("{}\n\n", message.trim_end()) };
    format!(
        "{message}# {}\n\nFrom {} ({})\n\n{}\n",
        job_name(item),
        item.url,
        item.item,
        item.body.trim_end()
    )
}

#[derive(Debug)]
pub struct Ingested {
    pub job: Job,
    /// Only where the job was made now.
    pub submitted: Option<SubmitAnswer>,
}

impl Effects {
    /// Looks an outside item up.
    pub async fn tracker_item(&self, tracker: &str, item: &str) -> Result<TrackerItem, Error> {
        Ok(self.port.item(tracker, item).await?)
    }

    /// The item's one spelling, where the product may use the repository that it is in. The token of a tracker can do
    /// more than anybody who may make a job: whoever sees every product may use what is not configured, and others
    /// what their product owns.
    pub fn usable_item(
        &self,
        tracker: &str,
        item: &str,
        product: &ProductId,
        sees_everything: bool,
    ) -> Result<String, Error> {
        let named = self.port.named(tracker, item)?;
        let Some(repo) = &named.repo else { return Ok(named.item) };
        let allowed = self.port.allows(tracker, repo, product);
        if allowed.unwrap_or_else(|| sees_everything || self.owns_repo(product, repo)) {
            return Ok(named.item);
        }
        Err(FieldProblem::new("item", self.not_allowed(tracker, repo, product, allowed.is_some())).into())
    }

    fn not_allowed(&self, tracker: &str, repo: &str, product: &ProductId, is_listed: bool) -> String {
        let or_own = if is_listed {
            String::new()
        } else {
            format!(", or let the product own it (`giga product set {product} --repos {repo}`)")
        };
        format!(
            "product {product} may not use {repo} with the coordinator's token for {}; list it there in the setting \
             {tracker}-repos (`{product}={repo}`){or_own}",
            self.port.display_name(tracker)
        )
    }

    /// Whether the operator has taken the repository of an item away from the product.
    pub(super) fn is_withdrawn(&self, tracker: &str, item: &str, product: &ProductId) -> Option<String> {
        let repo = self.port.named(tracker, item).ok()?.repo?;
        (self.port.allows(tracker, &repo, product) == Some(false)).then_some(repo)
    }

    fn owns_repo(&self, product: &ProductId, repo: &str) -> bool {
        let state = self.fleet.view.lock();
        state.tenants.owner_of(repo).is_some_and(|(owner, _)| owner == product)
    }

    /// The job of an item, where it has one.
    pub async fn ingested(&self, product: &ProductId, key: &str) -> Result<Option<Job>, Error> {
        Ok(self.core.store.read().job_by_key(product, key).await?)
    }

    /// Tells the item of the job where it stands, now, whether or not that changed.
    pub async fn echo(&self, id: JobId) -> Result<Effect, Error> {
        let job = self.core.store.read().job(id).await?.ok_or(StoreError::NoSuchJob(id))?;
        let Some((tracker, item)) = tracker_of(&job) else {
            let message = format!("job {id} was not made from the item of a tracker");
            return Err(FieldProblem::new("jobId", message).into());
        };
        if let Some(repo) = self.is_withdrawn(&tracker, &item, &job.product) {
            let message = self.not_allowed(&tracker, &repo, &job.product, true);
            return Err(FieldProblem::new("jobId", message).into());
        }
        let seq = job.last_event;
        self.put_into_outbox(NewEffect {
            id: format!("tracker:{id}:{seq}")
                .parse()
                .expect("ids and numbers between colons are an effect id"),
            product: Some(job.product.clone()),
            target: EffectTarget::Tracker { tracker, item },
            job: Some(id),
            payload: json!({
                "jobId": id,
                "name": job.spec.name,
                "seq": seq,
                "to": job.stage(),
                "at": job.updated_at,
                "cause": "",
            }),
        })
        .await
    }
}

impl Coordinator {
    /// Makes the job of an item, or finds it. The manifest's key says which item: see [`tracker_key`].
    pub async fn ingest(&self, request: SubmitRequest) -> Result<Ingested, Error> {
        match self.submit(request).await {
            Ok(answer) if answer.created => Ok(Ingested { job: answer.job.clone(), submitted: Some(answer) }),
            Ok(answer) => Ok(Ingested { job: answer.job, submitted: None }),
            // The item, or the manifest beside it, has changed since. It is still the same item.
            Err(Error::Store(StoreError::KeyReused { job, .. })) => {
                let job = self.core.store.read().job(job).await?.ok_or(StoreError::NoSuchJob(job))?;
                Ok(Ingested { job, submitted: None })
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(title: &str) -> TrackerItem {
        TrackerItem {
            item: "acme/app#12".to_owned(),
            url: "https://github.com/acme/app/issues/12".to_owned(),
            title: title.to_owned(),
            body: "It says helo.\r\n".to_owned(),
            labels: Vec::new(),
        }
    }

    #[test]
    fn a_title_becomes_a_name_whatever_is_in_it() {
        assert_eq!(job_name(&item("  Fix\tthe\n\u{1b}[31mgreeting\u{202e} ")), "Fix the [31mgreeting");
        assert_eq!(job_name(&item(&"ä".repeat(300))).chars().count(), limits::NAME_CHARS);
        assert_eq!(job_name(&item("\u{200b}\u{0}\n")), "acme/app#12");
        let manifest = json!({ "name": job_name(&item("\u{2066}x\u{fffa}y\u{85}z\u{e0001}")) });
        giga_domain::manifest::from_json(&manifest).unwrap();
    }

    #[test]
    fn the_body_says_where_it_comes_from() {
        assert_eq!(
            tracked_body("Be brief.\n", &item("Greeting")),
            "Be brief.\n\n# Greeting\n\nFrom https://github.com/acme/app/issues/12 (acme/app#12)\n\nIt says helo.\n"
        );
        assert!(tracked_body("", &item("Greeting")).starts_with("# Greeting"));
    }
}
