//! The conformance suite of the ports for bytes. Every place that can hold artifacts and logs passes it.
//!
//! A case is an async function over a [`BlobFixture`]: an empty place, and handles on it as several coordinators would
//! have. The macro [`blob_conformance!`](crate::blob_conformance) makes a test of each.

pub mod artifacts;
pub mod logs;

use std::sync::Arc;

use giga_ports::{Artifacts, Logs};

/// One value is one place; a test makes its own.
pub trait BlobFixture: Send + Sync {
    /// As one process of many would have them.
    fn open(&self) -> (Arc<dyn Artifacts>, Arc<dyn Logs>);
}

/// One test per case for the fixture that the expression makes: `blob_conformance!(MyFixture::new().await);`
#[macro_export]
macro_rules! blob_conformance {
    ($fixture:expr) => {
        $crate::blob_conformance! { @cases $fixture;
            artifacts: [
                what_is_put_comes_back_until_it_is_deleted,
                any_stretch_of_a_file_can_be_read,
                an_empty_file_is_a_file,
                a_large_file_goes_in_parts_and_comes_back_whole,
                one_that_breaks_off_leaves_nothing,
                a_folder_goes_with_all_that_is_in_it_and_with_nothing_else,
                a_key_may_have_any_letters,
                a_look_leaves_nothing_behind,
            ],
            logs: [
                one_grows_at_its_end_and_a_repeated_piece_adds_nothing,
                a_gap_is_refused_and_says_where_to_go_on,
                removing_takes_every_run_and_can_be_repeated,
                many_small_pieces_read_as_one,
                two_coordinators_write_one_log,
                readers_see_a_beginning_of_it_at_any_time,
                one_who_looked_earlier_takes_nothing_away,
            ],
        }
    };
    (@cases $fixture:expr; $($module:ident: [$($case:ident),* $(,)?],)*) => {$(
        mod $module {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    let fixture = $fixture;
                    $crate::blob_suite::$module::$case(&fixture).await;
                }
            )*
        }
    )*};
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_case_is_run() {
        crate::case_list::assert_complete(
            include_str!("mod.rs"),
            &[("artifacts", include_str!("artifacts.rs")), ("logs", include_str!("logs.rs"))],
        );
    }
}
