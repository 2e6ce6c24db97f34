//! What folder mode remembers: which job a file became, and where the file is. One small note per job in `.giga/`,
//! replaced as a whole. Notes are kept when a job is done, so that the same file is known when it comes again; they go
//! when the coordinator has forgotten the job, which is looked at on start.

use std::collections::HashMap;
use std::io;

use giga_domain::JobId;
use rustix::fs::{self, AtFlags};
use serde::{Deserialize, Serialize};

use super::places::{self, Place, Places};

const MOST_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ticket {
    pub(super) job: JobId,
    pub(super) file: String,
    pub(super) place: Place,
    /// The job has ended for good: its file stays where it is.
    #[serde(default)]
    pub(super) over: bool,
}

pub(super) fn load(places: &Places) -> io::Result<HashMap<JobId, Ticket>> {
    let mut tickets = HashMap::new();
    for name in places::names(places.notes())? {
        let Some(job) = name.strip_suffix(".json").and_then(|id| id.parse::<JobId>().ok()) else { continue };
        let read = places::read(places.notes(), &name, MOST_BYTES);
        match read.and_then(|text| serde_json::from_slice::<Ticket>(&text).map_err(io::Error::other)) {
            // A name with a slash would lead elsewhere.
            Ok(ticket) if ticket.job == job && !ticket.file.contains('/') => {
                tickets.insert(job, ticket);
            }
            Ok(_) => tracing::warn!(name, "a note that is not one of ours is left alone"),
            Err(error) => tracing::warn!(%error, name, "a note cannot be read and is left alone"),
        }
    }
    Ok(tickets)
}

pub(super) fn save(places: &Places, ticket: &Ticket) -> io::Result<()> {
    let name = note_name(ticket.job);
    let draft = format!("{name}.new");
    // Of a save that was cut off.
    let _ = fs::unlinkat(places.notes(), &draft, AtFlags::empty());
    places::create(places.notes(), &draft, &serde_json::to_vec(ticket)?)?;
    Ok(fs::renameat(places.notes(), &draft, places.notes(), &name)?)
}

pub(super) fn remove(places: &Places, job: JobId) -> io::Result<()> {
    Ok(fs::unlinkat(places.notes(), note_name(job), AtFlags::empty())?)
}

fn note_name(job: JobId) -> String {
    format!("{job}.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use giga_domain::Timestamp;

    #[test]
    fn notes_survive_and_strange_ones_are_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::open(root.path()).unwrap();
        let job = |n| JobId::from_parts(Timestamp::from_millis(1), n);
        let ticket =
            |n, file: &str| Ticket { job: job(n), file: file.to_owned(), place: Place::Review, over: false };
        for _ in 0..2 {
            save(&places, &ticket(1, "a.md")).unwrap();
        }
        save(&places, &ticket(2, "../../etc/passwd")).unwrap();
        save(&places, &ticket(3, "b.md")).unwrap();
        remove(&places, job(3)).unwrap();
        std::fs::write(root.path().join(".giga").join(note_name(job(4))), "{").unwrap();
        assert_eq!(load(&places).unwrap(), HashMap::from([(job(1), ticket(1, "a.md"))]));
    }
}
