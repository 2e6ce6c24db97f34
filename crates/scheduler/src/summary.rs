//! The queue by shape: what alerts and dashboards look at instead of every job.

use giga_domain::Timestamp;

use crate::{JobView, ReadyQueue};

/// Ready jobs that the same factories can run.
#[derive(Debug, Clone, Copy)]
pub struct ShapeSummary<'a> {
    /// The one that waits longest.
    pub representative: &'a JobView,
    pub count: usize,
    pub oldest_enqueued_at: Timestamp,
}

impl ReadyQueue {
    /// One per product, priority and shape that has a ready job. Jobs whose time has not come are left out.
    pub fn summaries(&self) -> impl Iterator<Item = ShapeSummary<'_>> {
        let lanes = self.products().flat_map(|(_, lanes)| lanes.iter()).flat_map(|(_, lanes)| lanes);
        let shapes = lanes.flat_map(|(_, &lane)| &self.lane(lane).shapes);
        shapes.filter_map(|(&(oldest_enqueued_at, _), &id)| {
            let ready = &self.shape(id).ready;
            let (_, representative) = ready.first_key_value()?;
            Some(ShapeSummary { representative, count: ready.len(), oldest_enqueued_at })
        })
    }
}
