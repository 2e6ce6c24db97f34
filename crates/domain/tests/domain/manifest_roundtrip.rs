//! Whatever a manifest says, its snapshot says the same; and no input makes the parser panic.

use giga_domain::job::{
    BudgetCaps, Concurrency, DepsMode, FailurePolicy, JobKind, RetryPolicy, ReviewGate, ShipMode,
};
use giga_domain::manifest::{Dep, Manifest, Persona, from_json, parse_markdown};
use giga_domain::{
    CapabilitySet, EngineChoice, EnginePick, FailReason, JobId, Priority, Timestamp, Usd, limits,
};
use proptest::prelude::*;
use proptest::{collection, option, sample};

fn printable() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 äß日🦀:#'\"{}\\[\\],&*!|>%@-]{0,30}[a-z]"
}

fn command() -> impl Strategy<Value = String> {
    "[a-z \\n\\t\"'$\\\\;|&]{0,30}[a-z]"
}

/// The engine and, for the shell, a script.
fn engine() -> impl Strategy<Value = (EngineChoice, Option<String>)> {
    let pick = ("[b-z][a-z0-9-]{0,9}", option::of("[a-z0-9][a-z0-9.:/@-]{0,1}[a-z0-9]"));
    let picks = collection::btree_map(pick.0, pick.1, 1..4).prop_map(|picks| {
        let pick = |(name, model)| EnginePick { name, model };
        EngineChoice::new(picks.into_iter().map(pick).filter(|pick| pick.name != "shell").collect())
    });
    prop_oneof![
        Just((EngineChoice::ANY, None)),
        picks.prop_map(|engine| (engine, None)),
        command().prop_map(|script| (EngineChoice::one("shell"), Some(script))),
    ]
}

fn repo() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_][a-z0-9_-]{0,9}(/[a-z0-9]{1,9}){0,2}",
        "https://[a-z]{1,9}/[a-z.]{0,1}[a-z]",
        "git@[a-z]{1,9}:[a-z]{1,9}",
    ]
}

fn review() -> impl Strategy<Value = ReviewGate> {
    collection::btree_set(printable(), 0..5).prop_flat_map(|names| {
        let reviewers: Vec<String> = names.into_iter().collect();
        let most = if reviewers.is_empty() { limits::REVIEWERS } else { reviewers.len() } as u32;
        (0..=most).prop_map(move |quorum| ReviewGate { quorum, reviewers: reviewers.clone() })
    })
}

fn deps() -> impl Strategy<Value = Vec<Dep>> {
    let ids = collection::btree_set(any::<u64>(), 0..3);
    let names = collection::btree_set("dep [a-z]{1,9}", 0..3);
    (ids, names).prop_map(|(ids, names)| {
        let ids = ids.into_iter().map(|n| Dep::Id(JobId::from_parts(Timestamp::from_millis(1), n.into())));
        ids.chain(names.into_iter().map(Dep::Name)).collect()
    })
}

prop_compose! {
    fn budget()(
        micros in option::of(0..=1_000_000_000_000i64),
        tokens in option::of(0..=1_000_000_000_000u64),
        wall_ms in option::of(1_000..=30 * 86_400_000u64),
    ) -> BudgetCaps {
        BudgetCaps { usd: micros.map(Usd::from_micros), tokens, wall_ms }
    }
}

prop_compose! {
    /// Who it is and where it runs; the rest as left out.
    fn identity()(
        name in printable(),
        product in option::of("[a-z0-9][a-z0-9_-]{0,20}"),
        repo in option::of(repo()),
        (engine, script) in engine(),
        persona in option::of(("[a-z]{1,9}", 1..u32::MAX)),
        capabilities in collection::btree_set("[a-z]{1,5}(:[a-z0-9]{1,5})?", 0..5),
    ) -> Manifest {
        let (defaults, _) = parse_markdown(b"---\nname: x\n---\n").expect("the smallest manifest");
        Manifest {
            name,
            product: product.map(|id| id.parse().expect("a product id")),
            repo,
            engine,
            script,
            persona: persona.map(|(name, version)| Persona { name, version }),
            capabilities: CapabilitySet::parse(capabilities).expect("capabilities"),
            ..defaults
        }
    }
}

prop_compose! {
    fn manifest()(
        identity in identity(),
        priority in sample::select(&Priority::ALL),
        kind in sample::select(&[JobKind::Agent, JobKind::Composite]),
        deps in deps(),
        deps_mode in sample::select(&[DepsMode::All, DepsMode::Any]),
        budget in budget(),
        (max, backoff_ms) in (0..=100u32, 0..=3_600_000u64),
        retry_on in sample::subsequence(FailReason::RETRIED_ON_REQUEST.to_vec(), 0..=3),
        verify in collection::vec(command(), 0..4),
        review in review(),
        (ship, key) in (sample::select(&[ShipMode::Manual, ShipMode::Auto]), option::of(printable())),
        concurrency in option::of((printable(), 1..=10_000u32)),
        run_at in option::of(-1_000_000_000_000..253_402_207_200_000i64),
    ) -> Manifest {
        if kind == JobKind::Composite {
            return composite(&identity, deps, review, ship, key);
        }
        Manifest {
            priority,
            kind,
            deps,
            deps_mode,
            budget,
            retry: RetryPolicy { max, backoff_ms },
            retry_on,
            verify,
            review,
            ship,
            concurrency: concurrency.map(|(key, limit)| Concurrency { key, limit }),
            idempotency_key: key,
            run_at: run_at.map(Timestamp::from_millis),
            ..identity
        }
    }
}

/// What runs is said by its children.
fn composite(
    identity: &Manifest,
    deps: Vec<Dep>,
    review: ReviewGate,
    ship: ShipMode,
    key: Option<String>,
) -> Manifest {
    let (defaults, _) = parse_markdown(b"---\nname: x\nkind: composite\n---\n").expect("a plain composite");
    Manifest {
        name: identity.name.clone(),
        product: identity.product.clone(),
        deps,
        on_failure: if key.is_some() { FailurePolicy::Continue } else { FailurePolicy::FailFast },
        review,
        ship,
        idempotency_key: key,
        ..defaults
    }
}

proptest! {
    #[test]
    fn a_snapshot_reads_back_as_it_was(manifest in manifest()) {
        let snapshot = serde_json::to_value(&manifest).unwrap();
        let read = from_json(&snapshot);
        prop_assert_eq!(read.as_ref(), Ok(&manifest), "{}", snapshot);
        let text = serde_json::to_string(&manifest).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Manifest>(&text).unwrap(), &manifest);
        // JSON is YAML: the other way in must come to the same.
        let markdown = format!("---\n{text}\n---\nbody");
        prop_assert_eq!(parse_markdown(markdown.as_bytes()), Ok((manifest, "body".to_owned())));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_markdown(&[b"---\n".as_slice(), &bytes, b"\n---\n"].concat());
    }

    #[test]
    fn no_front_matter_makes_it_panic(front in "([a-zA-Z]{1,9}[:,] ?[\\[{&*!|>\"'0-9a-z\n -]{0,9}\n){0,6}") {
        let _ = parse_markdown(format!("---\n{front}\n---\n").as_bytes());
    }
}
