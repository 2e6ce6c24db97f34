//! Events of the fleet that nothing else here causes.

use giga_ports::StoreError;
use giga_ports::store::Note;

use super::super::{Needs, Op, Working};

impl Op for Note {
    fn needs(&self, _: &mut Needs) {}

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        working.append(None, None, self.actor.clone(), self.event.clone());
        Ok(())
    }
}
