//! A job filter as SQL. Every value is bound, none is ever written into the text.

use giga_domain::{EffectId, JobId, Timestamp};
use giga_ports::store::{EffectFilter, JobFilter};

use super::{Cell, target_cell, text};

/// The `WHERE … LIMIT …` behind a select from jobs left-joined with leases, newest first. `contains` is the
/// database's function for "where in the first text does the second stand", 0 for nowhere.
pub(crate) fn list_query(
    filter: &JobFilter,
    before: Option<JobId>,
    limit: usize,
    contains: &str,
) -> (String, Vec<Cell>) {
    let mut clause = Clause::default();
    clause.one_of("jobs.product_id", filter.products.iter().map(text));
    clause.one_of("jobs.stage", filter.stages.iter().map(text));
    clause.one_of("jobs.priority", filter.priorities.iter().map(|p| u64::from(p.rank()).into()));
    clause.one_of("jobs.repo", filter.repo.iter().map(text));
    clause.one_of("leases.factory_id", filter.factory.iter().map(text));
    clause.one_of("jobs.parent_id", filter.parent.iter().map(text));
    if let Some(part) = &filter.name_contains {
        let place = clause.bind(part.as_str().into());
        clause.conditions.push(format!("{contains}(jobs.name, {place}) > 0"));
    }
    if let Some(before) = before {
        let place = clause.bind(text(before));
        clause.conditions.push(format!("jobs.id < {place}"));
    }
    clause.newest_first("jobs.id DESC", limit)
}

/// The `WHERE … LIMIT …` behind a select from effects, newest first.
pub(crate) fn effects_query(
    filter: &EffectFilter,
    before: Option<(Timestamp, EffectId)>,
    limit: usize,
) -> (String, Vec<Cell>) {
    let mut clause = Clause::default();
    clause.one_of("product_id", filter.products.iter().map(text));
    clause.one_of("state", filter.state.iter().map(|state| state.as_str().into()));
    clause.one_of("target", filter.target.iter().map(target_cell));
    clause.one_of("job_id", filter.job.iter().map(text));
    if let Some((at, id)) = before {
        let (at, id) = (clause.bind(at.into()), clause.bind(text(id)));
        clause.conditions.push(format!("(created_at, id) < ({at}, {id})"));
    }
    clause.newest_first("created_at DESC, id DESC", limit)
}

#[derive(Default)]
struct Clause {
    conditions: Vec<String>,
    values: Vec<Cell>,
}

impl Clause {
    fn bind(&mut self, value: Cell) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    fn newest_first(mut self, order: &str, limit: usize) -> (String, Vec<Cell>) {
        let limit = self.bind(limit.into());
        let conditions =
            if self.conditions.is_empty() { "TRUE".to_owned() } else { self.conditions.join(" AND ") };
        (format!("WHERE {conditions} ORDER BY {order} LIMIT {limit}"), self.values)
    }

    /// No values allow everything.
    fn one_of(&mut self, column: &str, values: impl Iterator<Item = Cell>) {
        let places: Vec<_> = values.map(|value| self.bind(value)).collect();
        if !places.is_empty() {
            self.conditions.push(format!("{column} IN ({})", places.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giga_domain::Stage;

    #[test]
    fn values_are_bound_and_never_written_into_the_text() {
        let hostile = "'; DROP TABLE jobs; --%_";
        let filter = JobFilter {
            stages: vec![Stage::Queued, Stage::Failed],
            repo: Some(hostile.into()),
            name_contains: Some(hostile.into()),
            ..JobFilter::default()
        };
        let (sql, values) = list_query(&filter, None, 7, "instr");
        assert_eq!(
            sql,
            "WHERE jobs.stage IN ($1, $2) AND jobs.repo IN ($3) AND instr(jobs.name, $4) > 0 \
             ORDER BY jobs.id DESC LIMIT $5"
        );
        assert_eq!(
            values,
            vec!["queued".into(), "failed".into(), hostile.into(), hostile.into(), Cell::Int(7)]
        );
        assert_eq!(
            list_query(&JobFilter::default(), None, 1, "instr").0,
            "WHERE TRUE ORDER BY jobs.id DESC LIMIT $1"
        );
    }
}
