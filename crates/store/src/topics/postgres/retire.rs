//! Retirement walks all jobs by age, a stretch per call, and begins again at its end: there is no index of ended jobs,
//! because every job would pay for it, and nothing that lives long is in the way of what lies behind it.

use giga_domain::JobId;
use giga_ports::StoreError;

use super::super::command::Retirement;
use super::Writer;
use super::values::Id;
use crate::postgres::error::failure;

/// Rows that are looked at in one go.
const PAGE: i64 = 5_000;
/// Pages that one call looks at when it finds too little to do.
const PAGES: usize = 10;

pub(super) async fn retire(writer: &mut Writer, asked: &Retirement) -> Result<usize, StoreError> {
    let mut retired = 0;
    let began = writer.walked;
    let mut wrapped = began == JobId::MIN;
    for _ in 0..PAGES {
        let left = asked.limit - retired;
        if left == 0 {
            break;
        }
        let walked = Id(writer.walked);
        let page = writer.client.query(&writer.statements.walk, &[&walked, &PAGE]).await.map_err(failure)?;
        let mut old = Vec::new();
        let (mut last, mut young) = (writer.walked, true);
        for row in &page {
            let Id(id) = row.try_get(0).map_err(failure)?;
            let (state, at): (i16, i64) =
                (row.try_get(1).map_err(failure)?, row.try_get(2).map_err(failure)?);
            let created: i64 = row.try_get(3).map_err(failure)?;
            last = id;
            young &= created >= asked.before.as_millis();
            if state >= 3 && at < asked.before.as_millis() {
                old.push(Id(id));
                if old.len() == left {
                    young = false;
                    break;
                }
            }
        }
        if !old.is_empty() {
            let row = writer.client.query_one(&writer.statements.retire, &[&old]).await.map_err(failure)?;
            let gone: i64 = row.try_get(0).map_err(failure)?;
            retired += usize::try_from(gone).unwrap_or_default();
        }
        // Whatever was made later ended later: the end of the walk.
        if young {
            writer.walked = JobId::MIN;
            if wrapped {
                break;
            }
            wrapped = true;
        } else {
            writer.walked = last;
        }
    }
    Ok(retired)
}
