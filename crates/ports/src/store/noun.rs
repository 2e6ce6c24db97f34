//! How the traits of the store come into being.
//!
//! Each noun (jobs, budgets, tokens, …) has a file with its commands, its answers and one list: a line per write, a line
//! per read. The list is a macro that hands itself to another macro, so that everything which has to know all methods is
//! made from the same lines and nobody writes a forwarding method by hand:
//!
//! - `traits!` (below) makes the two traits of the noun. Whoever can [`Execute`] every command of a noun has its writes,
//!   and whoever [`Intercept`](super::Intercept)s has both;
//! - `writes!` and `reads!` (in `intercept.rs`) make the methods that an interceptor may override.
//!
//! A write takes one command, a value, and its reply is the command's [`Write::Reply`].

use super::StoreError;

pub(super) type Result<T> = std::result::Result<T, StoreError>;

/// A command of the store: a value that says everything about one write.
pub trait Write: std::fmt::Debug + Clone + Send + 'static {
    type Reply: Send + 'static;
}

/// Carries one kind of command out. The engine does it for all of them in the same way.
pub trait Execute<C: Write>: Send + Sync {
    fn execute(&self, command: C) -> impl Future<Output = Result<C::Reply>> + Send;
}

macro_rules! traits {
    (
        $(writes $Writes:ident {
            $($(#[$about_write:meta])* $write:ident($Command:ident) -> $Reply:ty;)*
        })?
        $(reads $Reads:ident {
            $($(#[$about_read:meta])* $read:ident($($arg:ident: $Arg:ty),*) -> $Answer:ty;)*
        })?
    ) => {
        $(
            #[async_trait::async_trait]
            pub trait $Writes: Send + Sync {
                $($(#[$about_write])* async fn $write(&self, command: $Command) -> Result<$Reply>;)*
            }

            #[async_trait::async_trait]
            impl<S: $(Execute<$Command> +)*> $Writes for S {
                $(async fn $write(&self, command: $Command) -> Result<$Reply> {
                    Execute::<$Command>::execute(self, command).await
                })*
            }

            $(
                impl Write for $Command {
                    type Reply = $Reply;
                }

                impl<I: Intercept> Execute<$Command> for I {
                    fn execute(&self, command: $Command) -> impl Future<Output = Result<$Reply>> + Send {
                        self.around(stringify!($write), Intercept::$write(self, command))
                    }
                }
            )*
        )?

        $(
            #[async_trait::async_trait]
            pub trait $Reads: Send + Sync {
                $($(#[$about_read])* async fn $read(&self, $($arg: $Arg),*) -> Result<$Answer>;)*
            }

            #[async_trait::async_trait]
            impl<I: InterceptReads> $Reads for I {
                $(async fn $read(&self, $($arg: $Arg),*) -> Result<$Answer> {
                    self.around(stringify!($read), InterceptReads::$read(self, $($arg),*)).await
                })*
            }
        )?
    };
}
