//! What holds for all programs.

use super::{Program, is_session_id};
use crate::sandbox::HostRule;

#[test]
fn every_engine_names_hosts() {
    for program in Program::ALL {
        let hosts = program.cli().hosts();
        assert!(!hosts.is_empty() && hosts.iter().all(|host| host.parse::<HostRule>().is_ok()), "{hosts:?}");
    }
}

#[test]
fn session_names() {
    for good in ["ses_494719016ffe85dk", "0199a213-81c0-7800-8aa1-bbab2a035a53", "devin-1"] {
        assert!(is_session_id(good), "{good}");
    }
    for bad in ["", "-x", "--help", "../x", "a b", "a\nb", "a/b", "$(x)", &"x".repeat(201)] {
        assert!(!is_session_id(bad), "{bad:?}");
    }
}
