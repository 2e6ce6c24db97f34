//! Feature flags at run time: checked against their type, persisted, audited.

use giga_domain::Actor;
use giga_domain::flag::{FLAGS, FlagDef};
use serde_json::Value;

use crate::{Coordinator, Error};

#[derive(Debug, Clone)]
pub struct FlagValue {
    pub def: &'static FlagDef,
    pub value: Value,
    pub is_default: bool,
}

impl Coordinator {
    pub async fn flags(&self) -> Result<Vec<FlagValue>, Error> {
        let set: std::collections::HashMap<_, _> = self.store.read().flags().await?.into_iter().collect();
        Ok(FLAGS
            .iter()
            .map(|def| FlagValue {
                def,
                value: set.get(def.name).cloned().unwrap_or_else(|| def.default_value()),
                is_default: !set.contains_key(def.name),
            })
            .collect())
    }

    pub async fn set_flag(&self, name: &str, value: Value, actor: Actor) -> Result<FlagValue, Error> {
        let def = FlagDef::named(name)?;
        def.check(&value)?;
        self.store.set_flag(def.name, value.clone(), actor).await?;
        self.view.lock().set_flag(def.name, value.clone());
        Ok(FlagValue { def, value, is_default: false })
    }
}
