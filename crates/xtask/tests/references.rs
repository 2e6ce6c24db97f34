//! The reference pages are written from the code and checked against it. `GIGA_UPDATE_DOCS=1 cargo test -p xtask` writes
//! them anew.

use std::fmt::Write as _;
use std::path::Path;

use giga_domain::token::Role;
use giga_domain::{AlertKind, EventKind, Stage};
use serde_json::Value;

fn check(page: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    if std::env::var_os("GIGA_UPDATE_DOCS").is_some() {
        std::fs::write(&path, wanted).expect("the docs folder can be written to");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/{page} is out of date: GIGA_UPDATE_DOCS=1 cargo test -p xtask writes it anew"
    );
}

/// The tables of a page that is otherwise written by hand, each between the marks `<!-- name: … -->` and
/// `<!-- end of name -->`.
#[test]
fn operations() {
    let mut stages = String::from("| it is | it waits for |\n| --- | --- |\n");
    for stage in Stage::ALL {
        writeln!(stages, "| {stage} | {} |", stage.waits_for()).unwrap();
    }
    let mut alerts = String::from("| alert | means | do |\n| --- | --- | --- |\n");
    for kind in AlertKind::ALL {
        let (means, advice) = kind.about();
        writeln!(alerts, "| `{kind}` | {means} | {advice} |").unwrap();
    }
    let mut roles = String::from("| role | may |\n| --- | --- |\n");
    for role in Role::ALL {
        writeln!(roles, "| {} | {} |", role.as_str(), role.about()).unwrap();
    }
    roles.push_str("| factory | claim and hold jobs, as one factory |\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let mut page = std::fs::read_to_string(path).expect("the page exists");
    for (name, table) in [("stages", stages), ("alerts", alerts), ("roles", roles)] {
        let begin =
            page.find(&format!("<!-- {name}: ")).expect("the page has the mark where the table begins");
        let begin = begin + page[begin..].find('\n').expect("the mark is a line") + 1;
        let end = page.find(&format!("<!-- end of {name} -->")).expect("the page has the mark where it ends");
        page.replace_range(begin..end, &format!("\n{table}\n"));
    }
    check("operations.md", &page);
}

#[test]
fn events() {
    let mut page = String::from(
        "# Events\n\n\
         Every change appends an event in the same transaction. A job's events have a `seq` of 1, 2, 3, … without gaps; all events \
         have a `pos` in the fleet-wide feed, rising in commit order. Read them with `giga job events JOB [-f]`, `GET \
         /api/fleet/jobs/{id}/events`, or live as SSE from `/events/stream`; resume with `Last-Event-ID`.\n\n\
         Each has `pos`, `at`, `type`, `cause` (one line for people), `actor` and `data`; a job's also `jobId`, `productId`, `seq`, and \
         `from` and `to` where its stage changed. Events about factories, tokens and flags belong to no product and are shown to \
         tokens for every product only.\n\n\
         | type | meaning |\n| --- | --- |\n",
    );
    for kind in EventKind::ALL {
        writeln!(page, "| `{kind}` | {} |", kind.about()).unwrap();
    }
    check("events.md", &page);
}

/// The document itself, for those who make clients of it; the page's types are made of it (`cargo xtask web-types`).
#[test]
fn openapi() {
    let document = serde_json::to_string_pretty(&giga_server::openapi()).unwrap();
    check("openapi.json", &format!("{document}\n"));
}

#[test]
fn api() {
    let document = serde_json::to_value(giga_server::openapi()).unwrap();
    let mut page = String::from(
        "# API\n\n\
         Written from the OpenAPI document, which a coordinator serves at `/api/openapi.json` (3.1): look there for every field. \
         `Authorization: Bearer giga_…` on all but the probes; `x-product-id` selects the product where a token covers several. \
         Errors are `application/problem+json` with a stable `code`.\n\n\
         | call | what it does |\n| --- | --- |\n",
    );
    let paths = document["paths"].as_object().expect("an OpenAPI document has paths");
    for (path, item) in paths {
        for method in ["get", "post", "put", "patch", "delete"] {
            if let Some(operation) = item.get(method) {
                let summary = operation.get("summary").or(operation.get("description"));
                let summary = summary.and_then(Value::as_str).unwrap_or_default().replace('\n', " ");
                assert!(!summary.is_empty(), "{method} {path} needs a summary");
                writeln!(page, "| `{} {path}` | {summary} |", method.to_uppercase()).unwrap();
            }
        }
    }
    check("api.md", &page);
}

/// A closed set of words is an enum in the document, and so in the types that clients make of it.
#[test]
fn words_of_the_wire_are_enums() {
    let document = serde_json::to_value(giga_server::openapi()).unwrap();
    let schemas = &document["components"]["schemas"];
    let vocabulary = include_str!("../../api/src/wire/vocabulary.rs");
    let declared = vocabulary.split("#[cfg(test)]").next().unwrap().split("words! {").skip(1);
    let names: Vec<&str> = declared
        .filter_map(|words| words.lines().map(str::trim).find(|line| line.starts_with(char::is_uppercase)))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        assert!(schemas[name]["enum"].is_array(), "{name} is not an enum of the document");
    }
    let mut plain = Vec::new();
    texts_about_words(&document, "", &mut plain);
    assert!(plain.is_empty(), "these list the words that they take; let them be enums: {plain:#?}");
}

/// Strings that are documented as "`a`, `b` or `c`".
fn texts_about_words(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let is_text = |schema: &Value| {
                let kind = &schema["type"];
                kind == "string" || kind.as_array().is_some_and(|kinds| kinds.contains(&"string".into()))
            };
            let text = is_text(value) || is_text(&value["items"]) || is_text(&value["schema"]);
            let about = fields.get("description").and_then(Value::as_str).unwrap_or_default();
            if text && lists_words(about) {
                found.push(format!("{place}: {about}"));
            }
            fields
                .iter()
                .for_each(|(name, field)| texts_about_words(field, &format!("{place}/{name}"), found));
        }
        Value::Array(items) => items.iter().for_each(|item| texts_about_words(item, place, found)),
        _ => {}
    }
}

fn lists_words(about: &str) -> bool {
    let parts: Vec<&str> = about.split('`').collect();
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    parts.windows(3).enumerate().any(|(at, parts)| {
        at % 2 == 1 && matches!(parts[1], ", " | " or " | ", or ") && is_word(parts[0]) && is_word(parts[2])
    })
}
