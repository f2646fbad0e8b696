//! What the decoders of text, thoughts and calls have in common: feeding, draining, forgetting.

/// Declares `Decoder` and `Events` of a module that has an `Event` with `Idle`, made by `event` of what the engine
/// gives.
macro_rules! decoder {
    ($(#[$doc:meta])* $raw:ty, $event:path) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct Decoder {
            raw: $raw,
        }

        impl Decoder {
            /// A decoder for what `model` says.
            pub fn new(model: &$crate::Model) -> Self {
                Self {
                    raw: <$raw>::create(model.raw()),
                }
            }

            /// Takes tokens and gives one event. What they complete beyond the first is queued: an empty `tokens`
            /// drains it.
            ///
            /// # Errors
            /// `invalid-token`: an id outside the vocabulary.
            pub fn feed(&mut self, tokens: &[u32]) -> $crate::Result<Event> {
                Ok($event(self.raw.feed(tokens)?))
            }

            /// Takes what a step accepted. A stop token is not shown, and where the step was the last of the
            /// generation, its turn ends with it. A decoder that [`Generator::decoder`](crate::Generator::decoder) made
            /// shows no stop text either. Else as [`Decoder::feed`].
            ///
            /// # Errors
            /// As [`Decoder::feed`].
            pub fn feed_output(&mut self, output: &$crate::Output) -> $crate::Result<Event> {
                let finish = output.finish_reason.map(Into::into);
                Ok($event(self.raw.feed_output(&output.tokens, finish)?))
            }

            /// Ends a turn that was begun, and what is open in it. One event, as of [`Decoder::feed`].
            pub fn finish(&mut self) -> Event {
                $event(self.raw.finish())
            }

            /// Takes tokens and gives every event that they complete, [`Event::Idle`] never.
            pub fn events(&mut self, tokens: &[u32]) -> Events<'_> {
                let first = self.feed(tokens);
                self.after(first)
            }

            /// Takes what a step accepted and gives every event that it completes, [`Event::Idle`] never.
            pub fn output_events(&mut self, output: &$crate::Output) -> Events<'_> {
                let first = self.feed_output(output);
                self.after(first)
            }

            /// Forgets what was fed, for the next turn.
            pub fn reset(&mut self) {
                self.raw.reset();
            }

            fn after(&mut self, first: $crate::Result<Event>) -> Events<'_> {
                Events {
                    decoder: self,
                    next: Some(first),
                }
            }
        }

        /// The events of one batch of tokens, from [`Decoder::events`]. An error is the last item.
        #[derive(Debug)]
        pub struct Events<'decoder> {
            decoder: &'decoder mut Decoder,
            next: Option<$crate::Result<Event>>,
        }

        impl Iterator for Events<'_> {
            type Item = $crate::Result<Event>;

            fn next(&mut self) -> Option<Self::Item> {
                let event = self.next.take()?;
                match &event {
                    Ok(Event::Idle) => return None,
                    Ok(_) => self.next = Some(self.decoder.feed(&[])),
                    Err(_) => {}
                }
                Some(event)
            }
        }

        impl std::iter::FusedIterator for Events<'_> {}
    };
}

pub(crate) use decoder;
