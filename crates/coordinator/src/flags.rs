//! Feature flags at run time: checked against their type, persisted, audited.

use giga_ports::store::SetFlag;
use std::collections::BTreeMap;

use giga_domain::flag::{DELIVERY, FLAGS, FlagDef, factory_of};
use giga_domain::{Actor, Delivery, FactoryId};
use serde_json::Value;

use crate::{Coordinator, Error, FieldProblem};

#[derive(Debug, Clone)]
pub struct FlagValue {
    /// The flag's own, or `delivery.FACTORY`.
    pub name: String,
    pub def: &'static FlagDef,
    pub value: Value,
    /// What holds where it is not set: for one factory, that is what holds for the fleet.
    pub default: Value,
    pub is_default: bool,
}

impl Coordinator {
    /// Every flag, and after `delivery` the factories that have a mode of their own.
    pub async fn flags(&self) -> Result<Vec<FlagValue>, Error> {
        let set: BTreeMap<String, Value> = self.core.store.read().flags().await?.into_iter().collect();
        let mut flags = Vec::with_capacity(FLAGS.len());
        for def in FLAGS {
            let default = def.default_value();
            let value = set.get(def.name).cloned().unwrap_or_else(|| default.clone());
            let is_default = !set.contains_key(def.name);
            if def.name == DELIVERY {
                let own = set.iter().filter(|(name, _)| factory_of(name).is_some());
                let own = own.map(|(name, own)| FlagValue {
                    name: name.clone(),
                    def,
                    value: own.clone(),
                    default: value.clone(),
                    is_default: false,
                });
                let own: Vec<FlagValue> = own.collect();
                flags.push(FlagValue { name: def.name.to_owned(), def, value, default, is_default });
                flags.extend(own);
            } else {
                flags.push(FlagValue { name: def.name.to_owned(), def, value, default, is_default });
            }
        }
        Ok(flags)
    }

    /// `null` unsets it.
    pub async fn set_flag(&self, name: &str, value: Value, actor: Actor) -> Result<FlagValue, Error> {
        let def = FlagDef::named(name)?;
        if !value.is_null() {
            def.check(&value)?;
            if let Some(factory) = factory_of(name) {
                self.check_known(&factory).await?;
            }
        }
        self.core.store.set_flag(SetFlag { name: name.to_owned(), value: value.clone(), actor }).await?;
        let (default, is_default) = {
            let mut state = self.fleet.view.lock();
            state.set_flag(name, value.clone());
            let default = if factory_of(name).is_some() { state.flag(DELIVERY) } else { def.default_value() };
            (default, value.is_null())
        };
        self.dispatch.delivery_modes_changed();
        let value = if is_default { default.clone() } else { value };
        Ok(FlagValue { name: name.to_owned(), def, value, default, is_default })
    }

    async fn check_known(&self, factory: &FactoryId) -> Result<(), Error> {
        if self.core.store.read().factory(factory).await?.is_some() {
            return Ok(());
        }
        let message =
            format!("there is no factory `{factory}`; `giga factory list` shows those that are enrolled");
        Err(FieldProblem::new("name", message).into())
    }

    /// How jobs are meant to reach the factory.
    pub fn wished_delivery(&self, factory: &FactoryId) -> Delivery {
        self.fleet.view.lock().wished_delivery(factory)
    }
}
