//! A job filter as SQL. Every value is bound, none is ever written into the text.

use giga_domain::{EffectId, JobId, Timestamp};
use giga_ports::store::{EffectFilter, JobFilter};

use super::{Cell, target_cell, text};

/// More arms than this take longer to plan than they save.
const MOST_ARMS: usize = 100;

/// The `WHERE … LIMIT …` behind a select from jobs left-joined with leases, newest first. `contains` is the
/// database's own way to look for a part of a name, with `{}` for the part in lower case.
///
/// An index has the jobs of one product or stage in order, not those of several: asked for those at once, SQLite reads
/// all of them and sorts. So the newest of each are asked for one by one, and the newest of these are the answer.
pub(crate) fn list_query(
    filter: &JobFilter,
    before: Option<JobId>,
    limit: usize,
    contains: &str,
) -> (String, Vec<Cell>) {
    let mut clause = Clause::default();
    let arms = arms(filter);
    if arms.len() < 2 {
        clause.jobs_of(filter, before, contains);
    } else {
        let mut arm = |filter: &JobFilter| {
            clause.jobs_of(filter, before, contains);
            let newest = clause.newest_first("jobs.id DESC", limit);
            format!("SELECT id FROM (SELECT jobs.id FROM jobs {newest}) AS arm")
        };
        let union = arms.iter().map(&mut arm).collect::<Vec<_>>().join(" UNION ALL ");
        let most = clause.bind(limit.into());
        let newest = format!("SELECT id FROM ({union}) AS arms ORDER BY id DESC LIMIT {most}");
        clause.conditions.push(format!("jobs.id IN ({newest})"));
    }
    (clause.newest_first("jobs.id DESC", limit), clause.values)
}

/// The same filter as several, with one stage each, or with one product each where no stage narrows it down. Never with
/// one of both: an arm for each pair could read the same stage again and again for products that have little in it.
fn arms(filter: &JobFilter) -> Vec<JobFilter> {
    // What leaves few jobs to sort, or is about leases.
    if !filter.ids.is_empty() || filter.factory.is_some() || filter.parent.is_some() || filter.needs_input {
        return Vec::new();
    }
    match filter.stages.as_slice() {
        [] if filter.products.len() <= MOST_ARMS => {
            each_once(&filter.products, |product| JobFilter { products: vec![product], ..filter.clone() })
        }
        [] => Vec::new(),
        stages => each_once(stages, |stage| JobFilter { stages: vec![stage], ..filter.clone() }),
    }
}

/// What one arm has no other one may have.
fn each_once<T: Clone + PartialEq>(values: &[T], arm: impl Fn(T) -> JobFilter) -> Vec<JobFilter> {
    let first = |(at, value): &(usize, &T)| !values[..*at].contains(value);
    values.iter().enumerate().filter(first).map(|(_, value)| arm(value.clone())).collect()
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
    (clause.newest_first("created_at DESC, id DESC", limit), clause.values)
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

    /// Everything so far, which starts over behind it.
    fn newest_first(&mut self, order: &str, limit: usize) -> String {
        let limit = self.bind(limit.into());
        let conditions = std::mem::take(&mut self.conditions);
        let conditions = if conditions.is_empty() { "TRUE".to_owned() } else { conditions.join(" AND ") };
        format!("WHERE {conditions} ORDER BY {order} LIMIT {limit}")
    }

    fn jobs_of(&mut self, filter: &JobFilter, before: Option<JobId>, contains: &str) {
        let JobFilter {
            ids,
            products,
            stages,
            priorities,
            repo,
            factory,
            parent,
            name_contains,
            needs_input,
        } = filter;
        self.one_of("jobs.id", ids.iter().map(text));
        self.one_of("jobs.product_id", products.iter().map(text));
        self.one_of("jobs.stage", stages.iter().map(text));
        self.one_of("jobs.priority", priorities.iter().map(|p| u64::from(p.rank()).into()));
        self.one_of("jobs.repo", repo.iter().map(text));
        self.one_of("leases.factory_id", factory.iter().map(text));
        self.one_of("jobs.parent_id", parent.iter().map(text));
        if *needs_input {
            self.conditions.push("jobs.question_due IS NOT NULL".to_owned());
        }
        if let Some(part) = name_contains {
            let place = self.bind(part.to_ascii_lowercase().into());
            self.conditions.push(contains.replace("{}", &place));
        }
        if let Some(before) = before {
            let place = self.bind(text(before));
            self.conditions.push(format!("jobs.id < {place}"));
        }
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
    use giga_domain::{ProductId, Stage};

    const CONTAINS: &str = "instr(jobs.name, {}) > 0";

    #[test]
    fn values_are_bound_and_never_written_into_the_text() {
        let hostile = "'; drop table jobs; --%_{}";
        let filter = JobFilter {
            stages: vec![Stage::Queued],
            repo: Some(hostile.into()),
            name_contains: Some(hostile.into()),
            ..JobFilter::default()
        };
        let (sql, values) = list_query(&filter, None, 7, CONTAINS);
        assert_eq!(
            sql,
            "WHERE jobs.stage IN ($1) AND jobs.repo IN ($2) AND instr(jobs.name, $3) > 0 \
             ORDER BY jobs.id DESC LIMIT $4"
        );
        assert_eq!(values, vec!["queued".into(), hostile.into(), hostile.into(), Cell::Int(7)]);
        assert_eq!(
            list_query(&JobFilter::default(), None, 1, CONTAINS).0,
            "WHERE TRUE ORDER BY jobs.id DESC LIMIT $1"
        );
    }

    #[test]
    fn several_stages_are_asked_for_one_by_one() {
        let stages = vec![Stage::Queued, Stage::Failed, Stage::Queued];
        let filter = JobFilter { stages, repo: Some("r".into()), ..JobFilter::default() };
        let (sql, values) = list_query(&filter, None, 7, CONTAINS);
        assert_eq!(
            sql,
            "WHERE jobs.id IN (SELECT id FROM (\
             SELECT id FROM (SELECT jobs.id FROM jobs WHERE jobs.stage IN ($1) AND jobs.repo IN ($2) \
             ORDER BY jobs.id DESC LIMIT $3) AS arm UNION ALL \
             SELECT id FROM (SELECT jobs.id FROM jobs WHERE jobs.stage IN ($4) AND jobs.repo IN ($5) \
             ORDER BY jobs.id DESC LIMIT $6) AS arm) AS arms ORDER BY id DESC LIMIT $7) \
             ORDER BY jobs.id DESC LIMIT $8"
        );
        let arm = |stage: &str| [stage.into(), "r".into(), Cell::Int(7)];
        let ends = [Cell::Int(7), Cell::Int(7)];
        assert_eq!(values, [&arm("queued")[..], &arm("failed")[..], &ends[..]].concat());
    }

    #[test]
    fn products_have_arms_where_no_stage_narrows_them_down() {
        let product = |n: usize| format!("p{n}").parse::<ProductId>().expect("a product id");
        let with = |products: usize, stages: &[Stage]| JobFilter {
            products: (0..products).map(product).collect(),
            stages: stages.to_vec(),
            ..JobFilter::default()
        };
        for (filter, expected) in [
            (with(0, &[]), 0),
            (with(1, &[]), 1),
            (with(2, &[]), 2),
            (with(100, &[]), 100),
            (with(101, &[]), 0),
            (with(2, &[Stage::Queued]), 1),
            (with(101, &Stage::ALL), Stage::ALL.len()),
        ] {
            assert_eq!(arms(&filter).len(), expected, "{} products", filter.products.len());
        }
        let held = JobFilter { factory: Some("f-1".parse().expect("a factory id")), ..with(2, &Stage::ALL) };
        assert_eq!(arms(&held), []);
    }
}
