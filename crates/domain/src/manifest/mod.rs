//! The manifest: Markdown with YAML front matter, or the same fields as JSON.

/// The nearest of `known` to `given`, when it is near enough to be a slip of the pen.
pub fn suggest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&given.to_lowercase(), &word.to_lowercase()), word))
        .filter(|(distance, word)| *distance <= 1 + word.len() / 4)
        .min()
        .map(|(_, word)| word)
}
