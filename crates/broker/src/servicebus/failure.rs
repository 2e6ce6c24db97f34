//! What can go wrong there, by what one does about it.

use std::time::Duration;

use fe2o3_amqp::link::{
    DetachError, LinkStateError, ReceiverAttachError, RecvError, SendError, SenderAttachError,
};
use fe2o3_amqp::types::definitions::{self, AmqpError, ErrorCondition, LinkError};
use fe2o3_amqp_management::error::{AttachError, Error as RequestError};
use giga_ports::BrokerError;

/// Longer than any step takes, and shorter than anybody waits for a broker.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Throttled: again, later.
    Busy,
    /// The entity is not there.
    Missing,
    /// Whoever we are may not do that.
    Refused,
    TooLarge,
    /// The lock on a message is over, so somebody else may have it.
    LockLost,
    /// It is there already.
    Exists,
    /// The link, the session or the connection: again, on another.
    Lost,
}

#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) kind: Kind,
    pub(super) reason: String,
}

impl Failure {
    pub(super) fn new(kind: Kind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }

    pub(super) fn lost(reason: impl std::fmt::Display) -> Self {
        Self::new(Kind::Lost, format!("the connection to Service Bus was lost ({reason})"))
    }

    pub(super) fn is(&self, kind: Kind) -> bool {
        self.kind == kind
    }

    /// With what was being done.
    pub(super) fn during(self, what: impl std::fmt::Display) -> Self {
        Self { kind: self.kind, reason: format!("{what}: {}", self.reason) }
    }

    pub(super) fn of_condition(error: &definitions::Error) -> Self {
        let name = condition(&error.condition);
        let kind = match name.as_str() {
            "com.microsoft:server-busy" | "amqp:resource-limit-exceeded" => Kind::Busy,
            "amqp:not-found" | "com.microsoft:entity-disabled" => Kind::Missing,
            "amqp:unauthorized-access" | "com.microsoft:auth-failed" => Kind::Refused,
            "amqp:link:message-size-exceeded" => Kind::TooLarge,
            "com.microsoft:message-lock-lost" | "com.microsoft:session-lock-lost" => Kind::LockLost,
            "com.microsoft:entity-already-exists" => Kind::Exists,
            _ => Kind::Lost,
        };
        let said = error.description.as_deref().unwrap_or_default();
        Self::new(kind, if said.is_empty() { name } else { format!("{said} ({name})") })
    }

    /// By the status of an answer, which is that of HTTP.
    pub(super) fn of_status(status: u16, said: &str) -> Self {
        let kind = match status {
            401 | 403 => Kind::Refused,
            404 => Kind::Missing,
            409 => Kind::Exists,
            410 => Kind::LockLost,
            429 | 503 => Kind::Busy,
            _ => Kind::Lost,
        };
        Self::new(kind, format!("{} (status {status})", if said.is_empty() { "refused" } else { said }))
    }
}

fn condition(condition: &ErrorCondition) -> String {
    match condition {
        ErrorCondition::Custom(name) => name.0.clone(),
        ErrorCondition::AmqpError(AmqpError::NotFound) => "amqp:not-found".to_owned(),
        ErrorCondition::AmqpError(AmqpError::UnauthorizedAccess) => "amqp:unauthorized-access".to_owned(),
        ErrorCondition::AmqpError(AmqpError::ResourceLimitExceeded) => {
            "amqp:resource-limit-exceeded".to_owned()
        }
        ErrorCondition::LinkError(LinkError::MessageSizeExceeded) => {
            "amqp:link:message-size-exceeded".to_owned()
        }
        other => format!("{other:?}"),
    }
}

impl From<Failure> for BrokerError {
    fn from(failure: Failure) -> Self {
        Self::because(failure.reason)
    }
}

impl From<SenderAttachError> for Failure {
    fn from(error: SenderAttachError) -> Self {
        match &error {
            SenderAttachError::RemoteClosedWithError(why) => Self::of_condition(why),
            _ => Self::lost(error),
        }
    }
}

impl From<ReceiverAttachError> for Failure {
    fn from(error: ReceiverAttachError) -> Self {
        match &error {
            ReceiverAttachError::RemoteClosedWithError(why) => Self::of_condition(why),
            _ => Self::lost(error),
        }
    }
}

impl From<LinkStateError> for Failure {
    fn from(error: LinkStateError) -> Self {
        match &error {
            LinkStateError::RemoteClosedWithError(why) | LinkStateError::RemoteDetachedWithError(why) => {
                Self::of_condition(why)
            }
            _ => Self::lost(error),
        }
    }
}

impl From<DetachError> for Failure {
    fn from(error: DetachError) -> Self {
        match &error {
            DetachError::RemoteClosedWithError(why) | DetachError::RemoteDetachedWithError(why) => {
                Self::of_condition(why)
            }
            _ => Self::lost(error),
        }
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        match error {
            SendError::LinkStateError(error) => error.into(),
            SendError::Detached(error) => error.into(),
            SendError::MessageSizeExceeded(size) => Self::new(
                Kind::TooLarge,
                format!(
                    "a message of {} bytes is more than the {} bytes that this topic takes",
                    size.size, size.max_size
                ),
            ),
            other => Self::lost(other),
        }
    }
}

impl From<RecvError> for Failure {
    fn from(error: RecvError) -> Self {
        match error {
            RecvError::LinkStateError(error) => error.into(),
            other => Self::lost(other),
        }
    }
}

impl From<AttachError> for Failure {
    fn from(error: AttachError) -> Self {
        match error {
            AttachError::Sender(error) => error.into(),
            AttachError::Receiver(error) => error.into(),
        }
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Status(status) => {
                Self::of_status(status.code.0.get(), status.description.as_deref().unwrap_or_default())
            }
            RequestError::Send(error) => error.into(),
            RequestError::Recv(error) => error.into(),
            other => Self::lost(other),
        }
    }
}
