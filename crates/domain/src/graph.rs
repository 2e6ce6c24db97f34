//! Who waits for whom, as a graph: finds a circle and says how it goes round.
//!
//! Never looks anything up; a caller says who waits for whom.

use std::collections::HashMap;
use std::hash::Hash;

/// The first circle that is found, beginning and ending with the same node: `a → b → a` as `[a, b, a]`. In the order
/// of `nodes` and of what each waits for, so that the same input always gives the same answer.
pub fn cycle<N: Copy + Eq + Hash>(
    nodes: impl IntoIterator<Item = N>,
    waits_for: impl Fn(N) -> Vec<N>,
) -> Option<Vec<N>> {
    let mut marks: HashMap<N, Mark> = HashMap::new();
    for start in nodes {
        if marks.contains_key(&start) {
            continue;
        }
        marks.insert(start, Mark::OnPath);
        // By hand and not by recursion: a chain may be longer than a stack.
        let mut path = vec![(start, waits_for(start).into_iter())];
        while let Some((node, awaited)) = path.last_mut() {
            let node = *node;
            match awaited.next().map(|next| (next, marks.get(&next))) {
                None => {
                    marks.insert(node, Mark::Done);
                    path.pop();
                }
                Some((_, Some(Mark::Done))) => {}
                Some((next, Some(Mark::OnPath))) => {
                    let round = path.iter().map(|(node, _)| *node).skip_while(|node| *node != next);
                    return Some(round.chain([next]).collect());
                }
                Some((next, None)) => {
                    marks.insert(next, Mark::OnPath);
                    path.push((next, waits_for(next).into_iter()));
                }
            }
        }
    }
    None
}

#[derive(Clone, Copy)]
enum Mark {
    OnPath,
    Done,
}

/// `a → b → a`
pub fn drawn(round: impl IntoIterator<Item: ToString>) -> String {
    round.into_iter().map(|node| node.to_string()).collect::<Vec<_>>().join(" → ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(edges: &'static [(&'static str, &'static str)], expected: Option<&str>) {
        let waits_for = |node: &'static str| {
            edges.iter().filter(|(waiting, _)| *waiting == node).map(|(_, awaited)| *awaited).collect()
        };
        let found = cycle(edges.iter().map(|(node, _)| *node), waits_for);
        assert_eq!(found.map(drawn).as_deref(), expected, "{edges:?}");
    }

    #[test]
    fn circles_are_named_and_nothing_else_is() {
        check(&[], None);
        check(&[("a", "b"), ("b", "c"), ("a", "c")], None);
        check(&[("a", "a")], Some("a → a"));
        check(&[("a", "b"), ("b", "a")], Some("a → b → a"));
        // The way into it is no part of it.
        check(&[("in", "a"), ("a", "b"), ("b", "c"), ("c", "a")], Some("a → b → c → a"));
        // Two ways to the same place are no circle.
        check(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e")], None);
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let last = 1_000_000;
        let next = |node: u32| if node < last { vec![node + 1] } else { Vec::new() };
        assert_eq!(cycle([0], next), None);
        let round = cycle([0], |node| if node < last { vec![node + 1] } else { vec![last - 1] });
        assert_eq!(round, Some(vec![last - 1, last, last - 1]));
    }
}
