//! What opencode says of a session that it keeps: `opencode db --format json <query>`, as 1.18.33 has its tables.
//!
//! The program reads its own database, in the sandbox: a job could have written anything into that file.

use std::ffi::OsString;

use giga_domain::Timestamp;
use serde_json::Value;

use super::arguments;
use crate::engines::events::{LineEvent, count, dollars, text};
use crate::engines::prices::Tokens;

/// One row for each model, and one without a model where nothing was used: no row at all is no session. Helpers have sessions of
/// their own, whose parent is this one. The name of the session has no quotes in it.
pub(super) fn question(session: &str, since: Timestamp) -> Vec<OsString> {
    let since = since.as_millis();
    let sum = |path: &str| format!("total(p.data ->> '$.{path}')");
    let query = format!(
        "select m.data ->> '$.modelID' as model, {} as cost, {} + {} as input, {} as cached, {} + {} as output \
         from session s \
         left join part p on p.session_id = s.id and p.time_created >= {since} \
         and p.data ->> '$.type' = 'step-finish' \
         left join message m on m.id = p.message_id \
         where s.id = '{session}' or s.parent_id = '{session}' group by 1",
        sum("cost"),
        sum("tokens.input"),
        sum("tokens.cache.write"),
        sum("tokens.cache.read"),
        sum("tokens.output"),
        sum("tokens.reasoning"),
    );
    let mut args = arguments(["db", "--format", "json"]);
    args.push(query.into());
    args
}

pub(super) fn read(answer: &str) -> Option<Vec<LineEvent>> {
    let rows: Vec<Value> = serde_json::from_str(answer).ok()?;
    let used = rows.iter().flat_map(|row| {
        let model = text(row, "/model").map(|model| LineEvent::Model(model.to_owned()));
        let tokens = Tokens {
            input: count(row, "/input"),
            cached_input: count(row, "/cached"),
            output: count(row, "/output"),
        };
        // It says 0 of a model whose price it does not know.
        let usd = dollars(row, "/cost").filter(|usd| !usd.is_zero());
        model.into_iter().chain([LineEvent::Step { tokens, usd }])
    });
    (!rows.is_empty()).then(|| used.collect())
}

#[cfg(test)]
mod tests {
    use giga_domain::Usd;

    use super::*;

    fn tokens(input: u64, cached_input: u64, output: u64) -> Tokens {
        Tokens { input, cached_input, output }
    }

    /// The shape of the query's rows: two models, and a session without an answer.
    #[test]
    fn an_answer_of_the_program() {
        let priced = r#"[{"model":"a","cost":0.25,"input":10,"cached":4,"output":3},
            {"model":"b","cost":0,"input":3579,"cached":7356,"output":100}]"#;
        let expected = [
            LineEvent::Model("a".to_owned()),
            LineEvent::Step { tokens: tokens(10, 4, 3), usd: Some(Usd::from_micros(250_000)) },
            LineEvent::Model("b".to_owned()),
            LineEvent::Step { tokens: tokens(3_579, 7_356, 100), usd: None },
        ];
        assert_eq!(read(priced).unwrap(), expected);
        let unused = r#"[{"model":null,"cost":0,"input":0,"cached":0,"output":0}]"#;
        assert_eq!(read(unused).unwrap(), [LineEvent::Step { tokens: tokens(0, 0, 0), usd: None }]);
        for unknown in ["[]", "", "Error: no such table: session", "{}"] {
            assert_eq!(read(unknown), None, "{unknown}");
        }
    }
}
