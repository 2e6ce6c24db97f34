//! The status of a job: a sentence first, then what blocks it, suggested fixes, and the whole fleet.

use std::collections::BTreeSet;
use std::fmt::Write;

use comfy_table::{Cell, Color};
use giga_api::wire::{BlockerCode, Explanation, FactoryVerdict, Rejection, ScoreTerm};

use crate::commands::Done;
use crate::commands::context::Context;
use crate::output::{Columns, printable};

pub(super) async fn explain(meant: &str, context: &Context) -> Done {
    let client = context.client()?;
    let id = context.job_id(&client, meant).await?;
    let answer = client.explain(&id).await?;
    let job = client.job(&id).await?;
    context.output.one(&answer.json, "/summary", || {
        let about = format!("{}  {}  {}", job.id, job.stage.label(), printable(&job.name));
        explanation_text(&about, &answer)
    })
}

pub(super) fn explanation_text(about: &str, explanation: &Explanation) -> String {
    let mut text = format!("{about}\n\x1b[1m{}\x1b[0m\n", printable(&sentence(&explanation.summary)));
    if !explanation.blockers.is_empty() {
        text.push_str("\nBlocked by\n");
        for blocker in &explanation.blockers {
            let _ = writeln!(text, "  {}: {}", blocker.code, printable(&blocker.message));
        }
    }
    if !explanation.remedies.is_empty() {
        text.push_str("\nSuggested fixes\n");
        for remedy in &explanation.remedies {
            let _ = writeln!(text, "  - {}", printable(&remedy.message));
            if let Some(command) = &remedy.command {
                let _ = writeln!(text, "      \x1b[36m{}\x1b[0m", printable(command));
            }
        }
    }
    if !explanation.factories.is_empty() {
        text.push_str("\nFactories\n");
        let table = factories_table(&explanation.factories);
        for line in table.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// One column per score term, where any factory has a score; reasons where any is rejected.
fn factories_table(factories: &[FactoryVerdict]) -> String {
    let terms: BTreeSet<ScoreTerm> = factories.iter().flat_map(|f| f.terms.keys().copied()).collect();
    let scored = factories.iter().any(|f| f.score.is_some());
    let rejected = factories.iter().any(|f| f.rejected_by.is_some());
    let mut header = vec!["FACTORY".to_owned(), "VERDICT".to_owned()];
    if scored {
        header.push("SCORE".to_owned());
        header.extend(terms.iter().map(|term| term.label().to_uppercase()));
    }
    if rejected {
        header.push("REASON~".to_owned());
    }
    let mut table = Columns::new(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for factory in factories {
        let verdict = if factory.feasible {
            Cell::new("fits").fg(Color::Green)
        } else {
            Cell::new("no").fg(Color::Red)
        };
        let mut row = vec![Cell::new(printable(&factory.factory_id)), verdict];
        if scored {
            row.push(Cell::new(factory.score.map_or("-".to_owned(), |score| format!("{score:.2}"))));
            row.extend(terms.iter().map(|term| {
                Cell::new(factory.terms.get(term).map_or("-".to_owned(), |value| format!("{value:+.2}")))
            }));
        }
        if rejected {
            row.push(Cell::new(factory.rejected_by.as_ref().map(because).unwrap_or_default()));
        }
        table.row(row);
    }
    if scored {
        table.right(&(2..=2 + terms.len()).collect::<Vec<_>>());
    }
    table.render()
}

/// What speaks against the job alone is a sentence of its own; the rest is about the factory.
fn because(rejection: &Rejection) -> String {
    use BlockerCode::{Budget, Concurrency, NotReady, Paused};
    let about_the_job = matches!(rejection.filter, NotReady | Paused | Budget | Concurrency);
    let detail = printable(&rejection.detail);
    if about_the_job { detail } else { format!("it {detail}") }
}
