//! Which form of a packed file the caller gets (RFC 9110, section 12.5.3).

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Brotli,
    Gzip,
    Identity,
}

impl Coding {
    pub(super) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Brotli => Some("br"),
            Self::Gzip => Some("gzip"),
            Self::Identity => None,
        }
    }
}

/// The one that the caller likes best; among equals the smallest. Whoever says nothing, or refuses everything, gets
/// the file as it is, which everybody can read.
pub(super) fn choose<'a>(accepted: impl Iterator<Item = &'a str>) -> Coding {
    // Thousandths, as precise as the grammar allows.
    let (mut brotli, mut gzip, mut identity, mut others) = (None, None, None, None);
    for item in accepted.flat_map(|value| value.split(',')) {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        // What cannot be read is not wanted.
        let weight = quality.map_or(1_000, thousandths);
        match name.as_str() {
            "br" => brotli = Some(weight),
            "gzip" | "x-gzip" => gzip = Some(weight),
            "identity" => identity = Some(weight),
            "*" => others = Some(weight),
            _ => {}
        }
    }
    let weight = |own: Option<u32>| own.or(others).unwrap_or(0);
    // As it is is always fine, but only where nothing better is.
    let identity = identity.unwrap_or(1);
    let packed = [(weight(brotli), Coding::Brotli), (weight(gzip), Coding::Gzip)];
    let best = packed.into_iter().filter(|(weight, _)| *weight > 0).rev().max_by_key(|(weight, _)| *weight);
    best.filter(|(weight, _)| *weight >= identity).map_or(Coding::Identity, |(_, coding)| coding)
}

fn thousandths(text: &str) -> u32 {
    let value: f32 = text.parse().unwrap_or(0.0);
    if (0.0..=1.0).contains(&value) { (value * 1_000.0).round() as u32 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_that_is_accepted() {
        use Coding::{Brotli, Gzip, Identity};
        for (header, wanted) in [
            ("gzip, deflate, br, zstd", Brotli),
            ("gzip, deflate", Gzip),
            ("x-gzip", Gzip),
            ("GZIP", Gzip),
            ("", Identity),
            ("deflate, zstd", Identity),
            ("*", Brotli),
            ("br;q=0, *", Gzip),
            ("br;q=0, gzip;q=0", Identity),
            ("*;q=0", Identity),
            ("gzip;q=1.0, br;q=0.5", Gzip),
            ("gzip;q=0.5, br;q=0.5", Brotli),
            ("br;q=0.001", Brotli),
            ("identity;q=1, gzip;q=0.5", Identity),
            ("identity;q=0, gzip;q=0.5", Gzip),
            ("identity;q=0", Identity),
            ("br;q=nonsense, gzip;q=0.1", Gzip),
            ("br;q=7", Identity),
            ("br; Q=0.3 , gzip ; q=0.2", Brotli),
        ] {
            assert_eq!(choose([header].into_iter()), wanted, "{header}");
        }
        assert_eq!(choose(["gzip", "br"].into_iter()), Brotli, "in two headers");
        assert_eq!(choose([].into_iter()), Identity, "no header");
    }
}
