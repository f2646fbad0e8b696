//! Grammars that programs made: checked and compiled once for all programs of a user, and forgotten where they are too
//! many.
//!
//! A grammar is known by the hash of its source, to the user whose program made it alone: nobody can tell by the time
//! that a call takes what others made. What is kept is bounded in all, and where it is too much, the user who has the
//! most gives way. Sources that were refused are remembered as well, so that asking again costs nothing. Who holds a
//! grammar or a matcher is charged for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pie_text::grammar::{Compiled, Grammar, Source, Vocabulary, digest};
use pie_text::{Chat, ToolChoice, ToolList};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::errors::text_error;
use crate::sync::lock;

/// The most answers that are remembered of one user.
const MAX_USER_ANSWERS: usize = 256;
/// The most answers that are remembered in all.
const MAX_ANSWERS: usize = 4096;
/// The most bytes that are kept in all.
const MAX_BYTES: usize = 64 << 20;

/// What a program gave as the source of a grammar.
#[derive(Debug, Clone)]
pub(crate) enum OwnedSource {
    JsonSchema(String),
    AnyJson,
    Regex(String),
    Ebnf(String),
}

impl OwnedSource {
    fn borrowed(&self) -> Source<'_> {
        match self {
            Self::JsonSchema(text) => Source::JsonSchema(text),
            Self::AnyJson => Source::AnyJson,
            Self::Regex(text) => Source::Regex(text),
            Self::Ebnf(text) => Source::Ebnf(text),
        }
    }

    /// Bytes of its text.
    pub(crate) fn n_bytes(&self) -> usize {
        match self {
            Self::JsonSchema(text) | Self::Regex(text) | Self::Ebnf(text) => text.len(),
            Self::AnyJson => 0,
        }
    }
}

/// What an answer is of. Models are told apart by their addresses, which stay theirs as long as they are held.
type Key = (Option<usize>, [u8; 32]);

/// What came of a source, or of compiling a grammar for a model.
#[derive(Clone)]
enum Remembered {
    Checked(Result<Arc<Grammar>, Error>),
    Compiled(Result<Arc<Compiled>, Error>),
    /// Of the calls of a model; none where they cannot be enforced.
    Native(Result<Option<Arc<Grammar>>, Error>),
}

impl Remembered {
    fn n_bytes(&self) -> usize {
        const ERROR_BYTES: usize = 1 << 10;
        match self {
            Self::Checked(Ok(grammar)) => grammar.n_bytes(),
            Self::Compiled(Ok(compiled)) => compiled.n_bytes(),
            Self::Native(Ok(Some(grammar))) => grammar.n_bytes(),
            Self::Native(Ok(None)) => 0,
            Self::Checked(Err(_)) | Self::Compiled(Err(_)) | Self::Native(Err(_)) => ERROR_BYTES,
        }
    }
}

/// The grammars of a host.
#[derive(Default)]
pub(crate) struct Grammars {
    cache: Mutex<Cache>,
    vocabularies: Mutex<Vec<(Arc<Chat>, Arc<Vocabulary>)>>,
}

#[derive(Default)]
struct Cache {
    users: HashMap<Arc<str>, OfUser>,
    n_answers: usize,
    n_bytes: usize,
    /// Counts uses: of what one user has, the least used last is forgotten first.
    clock: u64,
}

/// What is remembered of one user.
#[derive(Default)]
struct OfUser {
    answers: HashMap<Key, (Remembered, u64)>,
    n_bytes: usize,
}

impl Cache {
    fn get(&mut self, user: &str, key: &Key) -> Option<Remembered> {
        self.clock += 1;
        let (remembered, used) = self.users.get_mut(user)?.answers.get_mut(key)?;
        *used = self.clock;
        Some(remembered.clone())
    }

    fn put(&mut self, user: &str, key: Key, remembered: Remembered) {
        self.clock += 1;
        let n_bytes = remembered.n_bytes();
        let of_user = self.users.entry(user.into()).or_default();
        let before = of_user.answers.insert(key, (remembered, self.clock));
        let before_bytes = before.as_ref().map_or(0, |(it, _)| it.n_bytes());
        of_user.n_bytes = of_user.n_bytes + n_bytes - before_bytes;
        let too_many = of_user.answers.len() > MAX_USER_ANSWERS;
        self.n_bytes = self.n_bytes + n_bytes - before_bytes;
        self.n_answers += usize::from(before.is_none());
        if too_many {
            self.forget_of(user);
        }
        while self.n_answers > MAX_ANSWERS || self.n_bytes > MAX_BYTES {
            let most = self
                .users
                .iter()
                .max_by_key(|(_, it)| (it.n_bytes, it.answers.len()));
            let Some(most) = most.map(|(user, _)| Arc::clone(user)) else {
                return;
            };
            self.forget_of(&most);
        }
    }

    /// Forgets what a user used least lately.
    fn forget_of(&mut self, user: &str) {
        let Some(of_user) = self.users.get_mut(user) else {
            return;
        };
        let oldest = of_user.answers.iter().min_by_key(|(_, (_, used))| *used);
        let oldest = oldest.map(|(key, _)| *key);
        if let Some((forgotten, _)) = oldest.and_then(|key| of_user.answers.remove(&key)) {
            of_user.n_bytes -= forgotten.n_bytes();
            self.n_bytes -= forgotten.n_bytes();
            self.n_answers -= 1;
        }
        if of_user.answers.is_empty() {
            self.users.remove(user);
        }
    }
}

impl Grammars {
    /// The grammar of a source, where the user's programs made it before.
    pub(crate) fn known(
        &self,
        user: &str,
        source: &OwnedSource,
    ) -> Option<Result<Arc<Grammar>, Error>> {
        match lock(&self.cache).get(user, &(None, digest(source.borrowed())))? {
            Remembered::Checked(checked) => Some(checked),
            Remembered::Compiled(_) | Remembered::Native(_) => None,
        }
    }

    /// Checks a source.
    ///
    /// # Errors
    /// `invalid-grammar`.
    pub(crate) fn check(&self, user: &str, source: &OwnedSource) -> Result<Arc<Grammar>, Error> {
        let checked = Grammar::new(source.borrowed());
        let checked = checked.map(Arc::new).map_err(text_error);
        let key = (None, digest(source.borrowed()));
        lock(&self.cache).put(user, key, Remembered::Checked(checked.clone()));
        checked
    }

    /// A grammar compiled for a model, where the user's programs had it compiled before.
    pub(crate) fn known_compiled(
        &self,
        user: &str,
        chat: &Arc<Chat>,
        grammar: &Grammar,
    ) -> Option<Result<Arc<Compiled>, Error>> {
        match lock(&self.cache).get(user, &(Some(address(chat)), *grammar.digest()))? {
            Remembered::Compiled(compiled) => Some(compiled),
            Remembered::Checked(_) | Remembered::Native(_) => None,
        }
    }

    /// Compiles a grammar for a model.
    ///
    /// # Errors
    /// `invalid-grammar`, `invalid-model`; `invalid-argument` for the grammar of another model's calls.
    pub(crate) fn compile(
        &self,
        user: &str,
        chat: &Arc<Chat>,
        grammar: &Arc<Grammar>,
    ) -> Result<Arc<Compiled>, Error> {
        let vocabulary = self.vocabulary(chat)?;
        let compiled = Compiled::new(vocabulary, grammar.clone());
        let compiled = compiled.map(Arc::new).map_err(text_error);
        let key = (Some(address(chat)), *grammar.digest());
        lock(&self.cache).put(user, key, Remembered::Compiled(compiled.clone()));
        compiled
    }

    /// The grammar of the calls of a model, where the user's programs had it made before.
    pub(crate) fn known_native(
        &self,
        user: &str,
        chat: &Arc<Chat>,
        asked: &NativeDigest,
    ) -> Option<Result<Option<Arc<Grammar>>, Error>> {
        match lock(&self.cache).get(user, &(Some(address(chat)), asked.0))? {
            Remembered::Native(grammar) => Some(grammar),
            Remembered::Checked(_) | Remembered::Compiled(_) => None,
        }
    }

    /// Makes the grammar of the calls of a model.
    ///
    /// # Errors
    /// Those of `tools`; `invalid-grammar`, `invalid-argument`.
    pub(crate) fn make_native(
        &self,
        user: &str,
        chat: &Arc<Chat>,
        asked: &NativeDigest,
        tools: impl FnOnce() -> pie_text::Result<ToolList>,
        choice: &ToolChoice,
    ) -> Result<Option<Arc<Grammar>>, Error> {
        let made = tools().and_then(|tools| chat.native_grammar(&tools, choice));
        let made = made.map(|it| it.map(Arc::new)).map_err(text_error);
        let key = (Some(address(chat)), asked.0);
        lock(&self.cache).put(user, key, Remembered::Native(made.clone()));
        made
    }

    /// The tree of a model's tokens, built at the first use. Whoever needs it meanwhile waits for it.
    fn vocabulary(&self, chat: &Arc<Chat>) -> Result<Arc<Vocabulary>, Error> {
        let mut vocabularies = lock(&self.vocabularies);
        if let Some((_, vocabulary)) = vocabularies.iter().find(|(it, _)| Arc::ptr_eq(it, chat)) {
            return Ok(vocabulary.clone());
        }
        let vocabulary = Vocabulary::new(chat.tokenizer().clone(), chat.control_tokens());
        let vocabulary = Arc::new(vocabulary.map_err(text_error)?);
        vocabularies.push((chat.clone(), vocabulary.clone()));
        Ok(vocabulary)
    }
}

/// What tells a wish for the grammar of a model's calls from all others: of which tools, and which choice there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NativeDigest([u8; 32]);

impl NativeDigest {
    /// Of schemas as a program gave them.
    pub(crate) fn of_schemas(schemas: &[String], choice: &ToolChoice) -> Self {
        let parts = schemas.iter().map(String::as_bytes);
        Self::of(b"schemas of tools", parts, choice)
    }

    /// Of tools that a context has.
    pub(crate) fn of_tools(tools: &ToolList, choice: &ToolChoice) -> Self {
        Self::of(b"tools", [&tools.digest()[..]].into_iter(), choice)
    }

    fn of<'a>(kind: &[u8], parts: impl Iterator<Item = &'a [u8]>, choice: &ToolChoice) -> Self {
        let (choice, name) = match choice {
            ToolChoice::Auto => (0, ""),
            ToolChoice::None => (1, ""),
            ToolChoice::Required => (2, ""),
            ToolChoice::Named(name) => (3, name.as_str()),
        };
        let mut hash = Sha256::new();
        // With their lengths, so that no two lists of parts are alike.
        let mut add = |part: &[u8]| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        [kind, &[choice], name.as_bytes()]
            .into_iter()
            .for_each(&mut add);
        parts.for_each(add);
        Self(hash.finalize().into())
    }
}

fn address(chat: &Arc<Chat>) -> usize {
    Arc::as_ptr(chat).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(n: usize) -> OwnedSource {
        OwnedSource::Regex(format!("a{{{n}}}"))
    }

    fn bad(n: usize) -> OwnedSource {
        OwnedSource::Regex(format!("({n}"))
    }

    #[test]
    fn users_know_what_they_made_alone_and_evict_nobody_else() {
        let grammars = Grammars::default();
        grammars.check("ada", &regex(1)).unwrap();
        assert!(grammars.known("ada", &regex(1)).is_some());
        assert!(grammars.known("mallory", &regex(1)).is_none());
        for n in 0..2 * MAX_ANSWERS {
            grammars.check("mallory", &bad(n)).unwrap_err();
        }
        assert!(
            grammars
                .known("mallory", &bad(2 * MAX_ANSWERS - 1))
                .is_some()
        );
        assert!(grammars.known("mallory", &bad(0)).is_none());
        assert!(grammars.known("ada", &regex(1)).is_some());
        let cache = lock(&grammars.cache);
        assert_eq!(cache.n_answers, MAX_USER_ANSWERS + 1);
    }

    #[test]
    fn what_is_made_a_second_time_counts_once() {
        let grammars = Grammars::default();
        grammars.check("ada", &regex(1)).unwrap();
        let counted = |grammars: &Grammars| {
            let cache = lock(&grammars.cache);
            (cache.users["ada"].n_bytes, cache.n_bytes, cache.n_answers)
        };
        let once = counted(&grammars);
        assert_eq!((once.0, once.2), (once.1, 1));
        grammars.check("ada", &regex(1)).unwrap();
        assert_eq!(counted(&grammars), once);
    }

    #[test]
    fn the_grammar_of_calls_is_made_once_for_a_user() {
        let folder = std::path::Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../python/pie/pie_tiny"
        ));
        let chat = Arc::new(Chat::from_dir(folder, 4096).unwrap());
        let schemas = [r#"{"name": "look", "parameters": {"type": "object"}}"#.to_owned()];
        let (grammars, choice) = (Grammars::default(), ToolChoice::Required);
        let asked = NativeDigest::of_schemas(&schemas, &choice);
        assert!(grammars.known_native("ada", &chat, &asked).is_none());
        let tools = || ToolList::parse(&schemas);
        let made = grammars.make_native("ada", &chat, &asked, tools, &choice);
        let made = made.unwrap().unwrap();
        let known = grammars.known_native("ada", &chat, &asked).unwrap();
        assert!(Arc::ptr_eq(&known.unwrap().unwrap(), &made));
        assert!(grammars.known_native("mallory", &chat, &asked).is_none());
        let other = Arc::new(Chat::from_dir(folder, 4096).unwrap());
        assert!(grammars.known_native("ada", &other, &asked).is_none());
        // What is refused is known as well.
        let twice = [schemas[0].clone(), schemas[0].clone()];
        let asked = NativeDigest::of_schemas(&twice, &choice);
        let tools = || ToolList::parse(&twice);
        let refused = grammars.make_native("ada", &chat, &asked, tools, &choice);
        let known = grammars.known_native("ada", &chat, &asked).unwrap();
        assert_eq!(known.unwrap_err(), refused.unwrap_err());
    }

    #[test]
    fn what_is_asked_of_calls_is_told_apart() {
        let named = |name: &str| ToolChoice::Named(name.to_owned());
        let lists = [&["ab", ""][..], &["a", "b"], &["ab"], &[]];
        let choices = [
            ToolChoice::Auto,
            ToolChoice::None,
            ToolChoice::Required,
            named(""),
            named("ab"),
        ];
        let mut seen = std::collections::HashSet::new();
        for list in lists {
            let list: Vec<String> = list.iter().map(ToString::to_string).collect();
            for choice in &choices {
                assert!(seen.insert(NativeDigest::of_schemas(&list, choice).0));
                assert_eq!(
                    NativeDigest::of_schemas(&list, choice).0,
                    NativeDigest::of_schemas(&list, &choice.clone()).0
                );
            }
        }
    }

    #[test]
    fn where_there_are_too_many_whoever_has_the_most_gives_way() {
        let grammars = Grammars::default();
        grammars.check("ada", &regex(1)).unwrap();
        for user in 0..MAX_ANSWERS / MAX_USER_ANSWERS + 2 {
            for n in 0..MAX_USER_ANSWERS {
                grammars
                    .check(&format!("user {user}"), &bad(n))
                    .unwrap_err();
            }
        }
        assert!(grammars.known("ada", &regex(1)).is_some());
        let cache = lock(&grammars.cache);
        assert_eq!(cache.n_answers, MAX_ANSWERS);
        let of_users = cache.users.values();
        let sums = of_users.fold((0, 0), |(answers, bytes), it| {
            (answers + it.answers.len(), bytes + it.n_bytes)
        });
        assert_eq!(sums, (cache.n_answers, cache.n_bytes));
    }
}
