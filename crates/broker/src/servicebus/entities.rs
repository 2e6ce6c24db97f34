//! Makes topics and subscriptions that are missing, by HTTP, where the credential may manage entities.
//!
//! A subscription is made together with its rule: nothing is ever in it that is for others. What an operator changed on an
//! entity that is there is left alone.

use std::sync::atomic::Ordering;
use std::time::Duration;

use giga_domain::FactoryId;
use tokio::time::Instant;

use super::address::subscription;
use super::failure::{Failure, Kind, PATIENCE};
use super::namespace::Namespace;
use crate::local::DELIVERIES;

/// The property of a message that rules look at.
pub(super) const TARGET: &str = "targetFactoryId";
pub(super) const RULE: &str = "target";
/// What Service Bus makes where nobody says otherwise: everything.
pub(super) const DEFAULT_RULE: &str = "$Default";

const VERSION: &str = "api-version=2021-05";
/// An entity is believed to be there for so long.
const KNOWN_FOR: Duration = Duration::from_mins(10);
/// Management that did not answer is asked again after so long.
const LEFT_ALONE: Duration = Duration::from_secs(30);
/// Nobody reads the mirror of dead letters by duty.
const MIRROR: &str = "mirror";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    Now,
    Before,
    /// We may not; whether it is there shows when it is used.
    Unknown,
}

impl Namespace {
    pub(super) async fn ensure_topics(&self) -> Result<(), Failure> {
        let topic = |unique: bool, kept: &str| {
            let unique = if unique {
                "<RequiresDuplicateDetection>true</RequiresDuplicateDetection>\
                 <DuplicateDetectionHistoryTimeWindow>PT2M</DuplicateDetectionHistoryTimeWindow>"
            } else {
                ""
            };
            entry(
                "TopicDescription",
                &format!("<DefaultMessageTimeToLive>{kept}</DefaultMessageTimeToLive>{unique}"),
            )
        };
        // As long as the streams of the other brokers keep them: past it the job has another target.
        let offers = self.address.offers();
        if self.make(&offers, topic(true, "PT10M")).await? == Made::Before {
            self.check_duplicates(&offers).await;
        }
        self.make(&self.address.hints(), topic(false, "PT1M")).await?;
        let dead = self.address.dead();
        self.make(&dead, topic(false, "P7D")).await?;
        let mirror = own_subscription("P7D", "P14D");
        self.make(&subscription(&dead, MIRROR), mirror).await?;
        Ok(())
    }

    /// Where offers for a factory wait, whether or not it reads them now.
    pub(super) async fn ensure_mailbox(&self, factory: &FactoryId) -> Result<Made, Failure> {
        let path = self.address.mailbox(factory);
        if self.is_known(&path) {
            return Ok(Made::Before);
        }
        let value = escaped(factory.as_str());
        let lock = self.tuning.lock.as_secs().clamp(5, 300);
        let description = format!(
            "<LockDuration>PT{lock}S</LockDuration><RequiresSession>false</RequiresSession>\
             <DefaultMessageTimeToLive>PT10M</DefaultMessageTimeToLive>\
             <DeadLetteringOnMessageExpiration>false</DeadLetteringOnMessageExpiration>\
             <DefaultRuleDescription><Filter i:type=\"CorrelationFilter\"><Properties><KeyValueOfstringanyType>\
             <Key>{TARGET}</Key><Value xmlns:d6p1=\"http://www.w3.org/2001/XMLSchema\" \
             i:type=\"d6p1:string\">{value}</Value></KeyValueOfstringanyType></Properties></Filter>\
             <Action i:type=\"EmptyRuleAction\"/><Name>{RULE}</Name></DefaultRuleDescription>\
             <MaxDeliveryCount>{DELIVERIES}</MaxDeliveryCount>\
             <ForwardDeadLetteredMessagesTo>sb://{}/{}</ForwardDeadLetteredMessagesTo>",
            self.address.host,
            self.address.dead()
        );
        let description = entry("SubscriptionDescription", &description);
        let mut made = self.make(&path, description.clone()).await;
        if made.as_ref().is_err_and(|failure| failure.is(Kind::Missing)) {
            // Somebody deleted the topic.
            self.ensure_topics().await?;
            made = self.make(&path, description).await;
        }
        let made = made?;
        if made != Made::Unknown {
            self.known.lock().insert(path, Instant::now());
        }
        Ok(made)
    }

    /// This coordinator's own, which deletes itself when nobody has read it for an hour.
    pub(super) async fn ensure_own(&self, topic: &str, name: &str) -> Result<Made, Failure> {
        let path = subscription(topic, name);
        let made = self.make(&path, own_subscription("PT1M", "PT1H")).await;
        if made.as_ref().is_err_and(|failure| failure.is(Kind::Missing)) {
            self.ensure_topics().await?;
            return self.make(&path, own_subscription("PT1M", "PT1H")).await;
        }
        made
    }

    fn is_known(&self, path: &str) -> bool {
        let mut known = self.known.lock();
        known.retain(|_, at| at.elapsed() < KNOWN_FOR);
        known.contains_key(path)
    }

    pub(super) fn forget(&self, path: &str) {
        self.known.lock().remove(path);
    }

    /// Never changes what is there.
    async fn make(&self, path: &str, description: String) -> Result<Made, Failure> {
        let down = self.management_down.lock().is_some_and(|until| until > Instant::now());
        if down || !self.may_manage.load(Ordering::Relaxed) {
            return Ok(Made::Unknown);
        }
        let dead = description.contains("<ForwardDeadLetteredMessagesTo>").then(|| self.address.dead());
        match self.call(reqwest::Method::PUT, path, Some(description), dead).await {
            Ok(_) => Ok(Made::Now),
            Err(failure) if failure.is(Kind::Exists) => Ok(Made::Before),
            Err(failure) if failure.is(Kind::Refused) => {
                if self.may_manage.swap(false, Ordering::Relaxed) {
                    tracing::warn!(
                        reason = failure.reason,
                        "this credential may not manage entities of Service Bus: missing ones are not made (docs/servicebus.md)"
                    );
                }
                Ok(Made::Unknown)
            }
            // By AMQP alone everything goes on that is there.
            Err(failure) if failure.is(Kind::Lost) => {
                tracing::warn!(reason = failure.reason, "entities of Service Bus cannot be made for now");
                *self.management_down.lock() = Some(Instant::now() + LEFT_ALONE);
                Ok(Made::Unknown)
            }
            Err(failure) => Err(failure.during(format!("{path} cannot be made"))),
        }
    }

    /// Without it the store still sees to it that a job is done once; an offer may just come twice.
    async fn check_duplicates(&self, topic: &str) {
        if let Ok(description) = self.call(reqwest::Method::GET, topic, None, None).await
            && description.contains("<RequiresDuplicateDetection>false<")
        {
            tracing::warn!(
                topic,
                "this topic of Service Bus does not detect duplicates, which can only be set when a topic is made"
            );
        }
    }

    async fn call(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<String>,
        dead: Option<String>,
    ) -> Result<String, Failure> {
        let url = self.address.management(path);
        let mut request = self.http.request(method, format!("{url}?{VERSION}")).timeout(PATIENCE);
        let token = |entity: &str| {
            let audience =
                format!("https://{}/{}", self.address.host, entity.split('/').next().unwrap_or_default());
            let now = self.access.clock.now();
            async move {
                let credential = &self.access.credential;
                credential.token(&self.http, &audience, now, self.tuning.signed_for).await
            }
        };
        request = request.header("authorization", token(path).await?.header());
        if let Some(dead) = dead {
            let token = token(&dead).await?;
            request = request.header("ServiceBusDlqSupplementaryAuthorization", token.header());
        }
        if let Some(body) = body {
            request =
                request.header("content-type", "application/atom+xml;type=entry;charset=utf-8").body(body);
        }
        let lost = |error: reqwest::Error| {
            Failure::new(
                Kind::Lost,
                format!("the management of Service Bus cannot be reached: {}", error.without_url()),
            )
        };
        let answer = request.send().await.map_err(lost)?;
        let status = answer.status().as_u16();
        let body = answer.text().await.map_err(lost)?;
        if (200..300).contains(&status) { Ok(body) } else { Err(Failure::of_status(status, &detail(&body))) }
    }
}

fn own_subscription(kept: &str, idle: &str) -> String {
    entry(
        "SubscriptionDescription",
        &format!(
            "<LockDuration>PT1M</LockDuration><DefaultMessageTimeToLive>{kept}</DefaultMessageTimeToLive>\
             <MaxDeliveryCount>10</MaxDeliveryCount><AutoDeleteOnIdle>{idle}</AutoDeleteOnIdle>"
        ),
    )
}

/// The elements of a description are read in one order, and one that comes too late is ignored.
fn entry(kind: &str, description: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><entry xmlns=\"http://www.w3.org/2005/Atom\">\
         <content type=\"application/xml\"><{kind} \
         xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\" \
         xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\">{description}</{kind}></content></entry>"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Why, from an answer that is an error.
fn detail(body: &str) -> String {
    let text = body.split_once("<Detail>").and_then(|(_, rest)| rest.split_once("</Detail>"));
    text.map_or(body, |(text, _)| text).chars().take(300).collect()
}
