//! Views: what an interface sees of a process.

/// Declares the view of an interface: the parts of the state of a process that it needs, by their names, and nothing
/// else. Where the handles of the program are among them, they come first, and errors are told through them.
///
/// `of` is the door through which every call comes, and counts it.
macro_rules! view {
    ($(#[$doc:meta])* $view:ident { $($part:ident: $type:ty),+ $(,)? }) => {
        $(#[$doc])*
        pub(crate) struct $view<'a> {
            $($part: &'a mut $type),+
        }

        impl wasmtime::component::HasData for $view<'static> {
            type Data<'a> = $view<'a>;
        }

        impl $view<'_> {
            fn of(state: &mut $crate::process::state::ProcessState) -> $view<'_> {
                state.count_arrival();
                $view {
                    $($part: &mut state.$part),+
                }
            }
        }

        $crate::interface::view::view!(@errors $view $($part)+);
    };
    (@errors $view:ident table $($part:ident)*) => {
        impl $crate::interface::bindings::pie::core::types::Host for $view<'_> {
            fn convert_error(
                &mut self,
                error: $crate::interface::errors::CallError,
            ) -> wasmtime::Result<$crate::interface::bindings::pie::core::types::Error> {
                self.table.convert_error(error)
            }
        }
    };
    (@errors $view:ident $($part:ident)+) => {};
}

pub(crate) use view;
