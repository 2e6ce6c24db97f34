//! Enums whose values are words on the wire, in the stores and on screens.
//!
//! The words come from the derives of `strum`; this adds what it has no derive for.

/// All values in their order, their words as constants, and an error for other words that lists them. The enum derives
/// `Display, EnumString, IntoStaticStr, VariantArray`, with `const_into_str` and `parse_err_fn = Self::unknown`.
macro_rules! words {
    ($name:ident, $what:literal) => {
        impl $name {
            pub const ALL: [Self; <Self as ::strum::VariantArray>::VARIANTS.len()] =
                *<Self as ::strum::VariantArray>::VARIANTS.first_chunk().expect("as many as there are");

            pub const fn as_str(self) -> &'static str {
                self.into_str()
            }

            fn unknown(text: &str) -> $crate::id::IdError {
                $crate::id::IdError::no_word($what, text, &Self::ALL.map(Self::as_str))
            }
        }
    };
}

pub(crate) use words;
