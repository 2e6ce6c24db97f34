//! Enums whose values are words on the wire, in the stores and on screens.

/// Such an enum in snake_case: all values in their order, their words as constants, and an error for other words that
/// lists them.
macro_rules! words {
    ($what:literal, $(#[$about:meta])* pub enum $name:ident { $($(#[$on:meta])* $variant:ident,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        #[derive(::strum::Display, ::strum::EnumString, ::strum::IntoStaticStr, ::strum::VariantArray)]
        #[serde(rename_all = "snake_case")]
        #[strum(serialize_all = "snake_case", const_into_str)]
        #[strum(parse_err_ty = $crate::id::IdError, parse_err_fn = Self::unknown)]
        pub enum $name { $($(#[$on])* $variant,)+ }

        $crate::word::words!($name, $what);
    };
    // For an enum that derives all of this by itself.
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
