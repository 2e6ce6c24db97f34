//! Which row is meant, in lists that change under the reader's eyes.

/// It holds on to the row's key, not to its number: rows come and go around it, and the row stays where it is on the
/// screen. Without a key (nobody moved yet) it is the first row, whichever that is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    key: Option<String>,
    index: usize,
    top: usize,
}

impl Cursor {
    pub fn index(&self) -> usize {
        self.index
    }

    /// The first row on the screen.
    pub fn top(&self) -> usize {
        self.top
    }

    /// The key of the row that is meant, if there is one.
    pub fn key<'a>(&self, keys: &'a [String]) -> Option<&'a str> {
        keys.get(self.index).map(String::as_str)
    }

    /// After the rows or the height changed.
    pub fn settle(&mut self, keys: &[String], height: usize) {
        let Some(last) = keys.len().checked_sub(1) else {
            (self.index, self.top) = (0, 0);
            return;
        };
        let found = self.key.as_ref().and_then(|key| keys.iter().position(|other| other == key));
        if let Some(found) = found {
            self.top = (self.top + found).saturating_sub(self.index);
            self.index = found;
        } else {
            // It is gone: whoever stands there now is meant.
            self.index = self.index.min(last);
            if self.key.is_some() {
                self.key = Some(keys[self.index].clone());
            }
        }
        let height = height.max(1);
        self.top = self.top.min(self.index).max((self.index + 1).saturating_sub(height));
        self.top = self.top.min(keys.len().saturating_sub(height));
    }

    pub fn step(&mut self, keys: &[String], by: isize, height: usize) {
        self.settle(keys, height);
        let last = keys.len().saturating_sub(1);
        self.go(keys, self.index.saturating_add_signed(by).min(last), height);
    }

    /// To the first row, and with it as others come before it.
    pub fn home(&mut self) {
        *self = Self::default();
    }

    pub fn end(&mut self, keys: &[String], height: usize) {
        self.go(keys, keys.len().saturating_sub(1), height);
    }

    pub fn select(&mut self, key: &str) {
        self.key = Some(key.to_owned());
    }

    fn go(&mut self, keys: &[String], index: usize, height: usize) {
        self.index = index;
        self.key = keys.get(index).cloned();
        self.settle(keys, height);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        text.chars().map(|c| c.to_string()).collect()
    }

    #[test]
    fn the_row_stays_where_it_is_while_others_come_and_go() {
        let mut cursor = Cursor::default();
        let rows = keys("abcdefgh");
        cursor.step(&rows, 4, 4);
        assert_eq!((cursor.key(&rows), cursor.index() - cursor.top()), (Some("e"), 3));
        let rows = keys("xyzabcdefgh");
        cursor.settle(&rows, 4);
        assert_eq!((cursor.key(&rows), cursor.index() - cursor.top()), (Some("e"), 3), "came above");
        let rows = keys("xyzabcefgh");
        cursor.settle(&rows, 4);
        assert_eq!((cursor.key(&rows), cursor.index() - cursor.top()), (Some("e"), 3), "went above");
        let rows = keys("xyzabcfgh");
        cursor.settle(&rows, 4);
        assert_eq!(cursor.key(&rows), Some("f"), "it is gone itself");
        cursor.settle(&[], 4);
        assert_eq!(cursor.key(&[]), None);
    }

    #[test]
    fn who_did_not_move_sees_the_newest() {
        let mut cursor = Cursor::default();
        cursor.settle(&keys("bc"), 4);
        let rows = keys("abc");
        cursor.settle(&rows, 4);
        assert_eq!((cursor.key(&rows), cursor.top()), (Some("a"), 0));
    }

    #[test]
    fn the_ends_hold() {
        let rows = keys("abc");
        let mut cursor = Cursor::default();
        cursor.step(&rows, 99, 2);
        assert_eq!((cursor.key(&rows), cursor.top()), (Some("c"), 1));
        cursor.step(&rows, -99, 2);
        assert_eq!((cursor.key(&rows), cursor.top()), (Some("a"), 0));
        cursor.end(&rows, 0);
        assert_eq!(cursor.key(&rows), Some("c"));
    }
}
