//! Supply and demand of capabilities.

use axum::Json;
use axum::extract::State;
use giga_api::wire;
use giga_coordinator::{CapabilityHolder, CapabilityView};

use super::Answer;
use crate::app::App;
use crate::caller::Caller;

pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Answer<Json<wire::CapabilityList>> {
    let views = app.coordinator.capabilities_for(&caller.sight()).await?;
    Ok(Json(wire::CapabilityList { capabilities: views.into_iter().map(shown).collect() }))
}

fn shown(view: CapabilityView) -> wire::CapabilityUse {
    let holder = |holder: &CapabilityHolder| wire::CapabilityHolder {
        factory_id: holder.factory.to_string(),
        available: holder.available,
        units: holder.units,
        used: holder.used,
    };
    wire::CapabilityUse {
        capability: view.capability.to_string(),
        factories: view.holders.iter().map(holder).collect(),
        units: view.units(),
        running: view.running,
        queued: view.queued,
        oldest_enqueued_at: view.oldest_enqueued_at.map(|at| at.to_string()),
        products: view
            .products
            .into_iter()
            .map(|(product, (running, queued))| wire::CapabilityDemand {
                product_id: product.to_string(),
                running,
                queued,
            })
            .collect(),
    }
}
