//! Who did something, as people call them: a token goes by its label.

use std::collections::HashMap;

use giga_domain::{Actor, TokenId};

use crate::app::App;
use crate::handlers::Answer;

/// What tokens are called.
pub(crate) struct Names(HashMap<TokenId, String>);

impl Names {
    pub(crate) async fn read(app: &App) -> Answer<Self> {
        let tokens = app.coordinator.reads().tokens().await?;
        Ok(Self(tokens.into_iter().map(|token| (token.id, token.label)).collect()))
    }

    pub(crate) fn any(&self, wanted: &str) -> bool {
        self.0.iter().any(|(id, label)| id.as_str() == wanted || label.to_lowercase().contains(wanted))
    }

    pub(crate) fn is_meant(&self, actor: &Actor, wanted: &str) -> bool {
        match actor {
            Actor::Token(id) => {
                let label = self.0.get(id).map(|label| label.to_lowercase());
                id.as_str() == wanted || label.is_some_and(|label| label.contains(wanted))
            }
            Actor::Factory(id) => id.as_str() == wanted,
            Actor::System(name) => name == wanted,
        }
    }

    pub(crate) fn of(&self, actor: &Actor) -> String {
        match actor {
            Actor::Token(id) => {
                let label = self.0.get(id).filter(|label| !label.is_empty());
                label.cloned().unwrap_or_else(|| id.to_string())
            }
            Actor::Factory(id) => id.to_string(),
            Actor::System(name) => name.clone(),
        }
    }
}
