//! Which submits are warned about, and in which words.

use giga_domain::{FactoryState, Health};
use giga_scheduler::{FactoryView, JobView, routable};

use crate::world::{capabilities, factory, fleet, full, job, product, repo};

fn sentence(job: &JobView, factories: impl IntoIterator<Item = FactoryView>) -> String {
    routable(job, &fleet(factories)).err().map_or_else(|| "routable".to_owned(), |e| e.to_string())
}

fn wanting(tokens: &[&str]) -> JobView {
    JobView { capabilities: capabilities(tokens), ..job(1) }
}

#[test]
fn what_passes_by_itself_is_no_reason() {
    let asleep =
        FactoryView { state: FactoryState::Draining, live: false, health: Health::Down, ..full("mac-1") };
    assert_eq!(sentence(&wanting(&["os:linux"]), [asleep]), "routable");
}

#[test]
fn every_reason_is_one_sentence() {
    let mac = || FactoryView { capabilities: capabilities(&["os:macos", "xcode"]), ..factory("mac-1") };
    let gpu = || FactoryView {
        capabilities: capabilities(&["os:linux", "gpu", "has:build"]),
        ..factory("linux-1")
    };
    let cases = [
        (wanting(&["build"]), vec![], "no factory has joined yet"),
        (wanting(&["build"]), vec![mac()], "no factory has the capability `build`"),
        (
            wanting(&["build"]),
            vec![mac(), gpu()],
            "no factory has the capability `build` (did you mean `has:build`?)",
        ),
        (
            wanting(&["os:linx", "tpu"]),
            vec![gpu()],
            "no factory has the capabilities `os:linx` and `tpu` (did you mean `os:linux` and `gpu`?)",
        ),
        (
            wanting(&["xcode", "os:macos", "gpu"]),
            vec![gpu(), mac()],
            "no single factory has all that it needs; mac-1 comes closest and lacks `gpu`",
        ),
        (
            job(1),
            vec![FactoryView { products: vec![product("other")], ..mac() }],
            "no factory's token admits the product `demo`",
        ),
        (
            JobView { repo: Some("https://example.org/notse.git".to_owned()), ..job(1) },
            vec![FactoryView { repos: vec![repo("notes")], ..mac() }],
            "no factory that could run it has the repository `https://example.org/notse.git` or may clone it (did \
             you mean `notes`?)",
        ),
        (
            JobView { repo: Some("git@example.org:team/notes.git".to_owned()), ..job(1) },
            vec![FactoryView { repos: vec![repo("notes")], ..mac() }],
            "routable",
        ),
        (
            JobView { repo: Some("elsewhere".to_owned()), ..job(1) },
            vec![FactoryView { can_clone: true, ..mac() }],
            "routable",
        ),
    ];
    for (job, factories, expected) in cases {
        assert_eq!(sentence(&job, factories), expected);
    }
}
