//! How much one run may use.
//!
//! Bounds that the kernel keeps for a process are set inside by `init`; what only makes sense for all processes of a run
//! together is the watch's.

use std::fmt;

/// `None` is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of all processes together; no single one may ask for more either.
    pub memory_bytes: Option<u64>,
    /// Threads count as the kernel counts them.
    pub processes: Option<u64>,
    /// Open at once, by one process.
    pub open_files: Option<u64>,
    /// The largest file.
    pub file_bytes: Option<u64>,
    /// In the work tree and the private home together.
    pub disk_bytes: Option<u64>,
}

const GIB: u64 = 1 << 30;

impl Limits {
    pub const NONE: Self =
        Self { memory_bytes: None, processes: None, open_files: None, file_bytes: None, disk_bytes: None };
}

/// Far above what work needs, and below what would take the machine down.
impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: Some(16 * GIB),
            processes: Some(4096),
            open_files: Some(65_536),
            file_bytes: Some(16 * GIB),
            disk_bytes: Some(64 * GIB),
        }
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |value: Option<u64>| value.map_or_else(|| "unbounded".to_owned(), human);
        let count = |value: Option<u64>| value.map_or_else(|| "unbounded".to_owned(), |n| n.to_string());
        write!(
            f,
            "memory {}, processes {}, open files {}, file size {}, disk {}",
            bytes(self.memory_bytes),
            count(self.processes),
            count(self.open_files),
            bytes(self.file_bytes),
            bytes(self.disk_bytes)
        )
    }
}

const UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// In the largest unit that divides it.
pub fn human(bytes: u64) -> String {
    let (unit, size) =
        UNITS.into_iter().find(|(_, size)| bytes >= *size && bytes.is_multiple_of(*size)).unwrap_or(("B", 1));
    format!("{} {unit}", bytes / size)
}

/// `16GiB`, `512M`, `2T`, or a plain number of bytes.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let unit = text.trim()[digits.len()..].trim();
    let known = UNITS.iter().find(|(name, _)| {
        unit.eq_ignore_ascii_case(name) || (name.len() == 3 && unit.eq_ignore_ascii_case(&name[..1]))
    });
    let size = if unit.is_empty() { 1 } else { known?.1 };
    digits.parse::<u64>().ok()?.checked_mul(size).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("16GiB", 16 << 30), ("512M", 512 << 20), ("2 tib", 2 << 40), ("100", 100), ("7B", 7)]
        {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for text in ["", "GiB", "-1", "1.5G", "0", "5XB", "99999999999T"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
        assert_eq!(human(16 << 30), "16 GiB");
        assert_eq!(human(1000), "1000 B");
    }
}
