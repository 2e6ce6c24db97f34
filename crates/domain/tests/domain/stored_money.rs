//! Rows that are written already: amounts stand in them as whole millionths under their first names, and stay so.

use giga_domain::factory::Advertised;
use giga_domain::job::{Assumed, BudgetCaps, Lease};
use giga_domain::{Checkpoint, RunReport, Spend, Usd};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads as that amount, is written as it was, and is refused where it is negative.
fn check<T: Serialize + DeserializeOwned>(row: Value, key: &str, amount: impl Fn(&T) -> Option<Usd>) {
    let read: T = serde_json::from_value(row.clone()).unwrap_or_else(|error| panic!("{row}: {error}"));
    assert_eq!(amount(&read), row[key].as_i64().map(Usd::from_micros), "{row}");
    assert_eq!(serde_json::to_value(&read).expect("plain data"), row);
    let mut negative = row;
    negative[key] = json!(-1);
    assert!(serde_json::from_value::<T>(negative.clone()).is_err(), "{negative}");
}

#[test]
fn rows_of_before_read_and_are_written_the_same() {
    let spend = json!({"usdMicros": 1_500_000, "tokens": 12});
    check(spend.clone(), "usdMicros", |spend: &Spend| Some(spend.usd));
    check(json!({"usdMicros": 2_500_000}), "usdMicros", |caps: &BudgetCaps| caps.usd);
    check(json!({"costUsdMicros": 250_000}), "costUsdMicros", |report: &RunReport| report.cost);
    let at = "2026-11-15T16:00:00.000Z";
    let lease = json!({"factory": "a", "request": "r", "grantedAt": at, "expiresAt": at,
        "reservedUsdMicros": 7, "spent": spend});
    check(lease, "reservedUsdMicros", |lease: &Lease| Some(lease.reserved));
    let assumed = json!({"chargedUsdMicros": 9, "chargedAt": at, "told": spend});
    check(assumed, "chargedUsdMicros", |assumed: &Assumed| Some(assumed.charged));
    let advertised = json!({"capabilities": [], "repos": [], "canClone": false, "seatLimit": 1, "load": 0.0,
        "health": "ok", "costUsdMicrosPerHour": 1_500_000});
    check(advertised, "costUsdMicrosPerHour", |factory: &Advertised| factory.cost_per_hour);
    let checkpoint: Checkpoint = serde_json::from_value(json!({"sessionSpend": spend})).unwrap();
    assert_eq!(checkpoint.session_spend, Some(Spend { usd: Usd::from_micros(1_500_000), tokens: 12 }));
}

#[test]
fn rows_without_an_amount_have_none() {
    assert_eq!(serde_json::from_str::<BudgetCaps>("{}").unwrap().usd, None);
    assert_eq!(serde_json::from_str::<RunReport>("{}").unwrap().cost, None);
    let at = "2026-11-15T16:00:00.000Z";
    let lease: Lease =
        serde_json::from_value(json!({"factory": "a", "request": "r", "grantedAt": at, "expiresAt": at}))
            .unwrap();
    assert_eq!((lease.reserved, lease.spent), (Usd::ZERO, Spend::default()));
}
