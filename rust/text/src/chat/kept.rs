//! The turn state of a context as bytes, to be kept with the context.
//!
//! A JSON text: `{"tools": [[TOOL, ...], ...], "stretches": [{"end": N, "turn": TURN}, ...]}`. Each TOOL is the JSON
//! text of a tool, so that a schema may be nested as deeply as in the call that gave it. A turn names a list of tools
//! by its index. docs/reference/snapshots.md lists the turns.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::role::Role;
use super::scene::{Answer, Particulars};
use super::state::ChatState;
use super::turn::Turn;
use crate::error::{Error, Result};
use crate::tools::list::ToolList;

/// All roles, by whose names they are kept.
const ROLES: [Role; 4] = [Role::System, Role::User, Role::Assistant, Role::Tool];

#[derive(Serialize, Deserialize)]
struct Kept {
    /// Lists of tools, each with its tools as JSON texts.
    tools: Vec<Vec<String>>,
    stretches: Vec<KeptStretch>,
}

#[derive(Serialize, Deserialize)]
struct KeptStretch {
    end: u32,
    turn: KeptTurn,
}

/// A [`Turn`], with lists of tools by their index.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptTurn {
    Said {
        role: String,
        closing: String,
        tools: Option<usize>,
        answer: Option<KeptAnswer>,
        plain_closing: Option<String>,
    },
    Tools {
        tools: usize,
        written: bool,
    },
    Open {
        whole: bool,
    },
    Sealed {
        closing: String,
        n_written: u32,
    },
    Cut {
        of: Box<Self>,
        n_kept: u32,
        n_gone: u32,
    },
    Raw,
}

#[derive(Serialize, Deserialize)]
struct KeptAnswer {
    name: String,
    id: Option<String>,
}

impl ChatState {
    /// The state as bytes, to be kept with its context.
    ///
    /// # Errors
    /// None that is known: what it holds can be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut lists = ToolLists::default();
        let stretches = self.stretches().into_iter();
        let stretches = stretches.map(|(end, turn)| KeptStretch {
            end,
            turn: lists.keep(turn),
        });
        let stretches = stretches.collect();
        let kept = Kept {
            tools: lists.0.iter().map(|list| list.texts()).collect(),
            stretches,
        };
        serde_json::to_vec(&kept).map_err(|error| malformed(&error.to_string()))
    }

    /// The state of a context of `length` tokens, from the bytes of [`Self::to_bytes`].
    ///
    /// # Errors
    /// `invalid-argument` for bytes that are none of such a state, with what is wrong.
    pub fn from_bytes(bytes: &[u8], length: u32) -> Result<Self> {
        let kept: Kept =
            serde_json::from_slice(bytes).map_err(|error| malformed(&error.to_string()))?;
        let lists = kept.tools.iter().map(|list| ToolList::of_texts(list));
        let lists: std::result::Result<Vec<_>, String> =
            lists.map(|list| list.map(Arc::new)).collect();
        let lists = lists.map_err(|why| malformed(&why))?;
        let mut before = 0;
        let mut stretches = Vec::with_capacity(kept.stretches.len());
        for KeptStretch { end, turn } in kept.stretches {
            if end < before || end > length {
                return Err(malformed("a stretch does not end behind the one before"));
            }
            before = end;
            stretches.push((end, turn.read(&lists)?));
        }
        Ok(Self::of_stretches(stretches.into_iter()))
    }
}

/// The lists of tools that a state names, each once.
#[derive(Default)]
struct ToolLists(Vec<Arc<ToolList>>);

impl ToolLists {
    fn index(&mut self, list: &Arc<ToolList>) -> usize {
        // A conversation is mostly given one list, and the last one comes again.
        let known = self.0.iter().rposition(|it| Arc::ptr_eq(it, list));
        known.unwrap_or_else(|| {
            self.0.push(Arc::clone(list));
            self.0.len() - 1
        })
    }

    fn keep(&mut self, turn: &Turn) -> KeptTurn {
        match turn {
            Turn::Said {
                role,
                closing,
                with,
            } => KeptTurn::Said {
                role: role.name().to_owned(),
                closing: closing.to_string(),
                tools: with.tools.as_ref().map(|tools| self.index(tools)),
                answer: with.answer.as_ref().map(|answer| {
                    let (name, id) = answer.parts();
                    KeptAnswer {
                        name: name.to_owned(),
                        id: id.map(str::to_owned),
                    }
                }),
                plain_closing: with.plain_closing.as_ref().map(ToString::to_string),
            },
            Turn::Tools { tools, written } => KeptTurn::Tools {
                tools: self.index(tools),
                written: *written,
            },
            Turn::Open { whole } => KeptTurn::Open { whole: *whole },
            Turn::Sealed { closing, n_written } => KeptTurn::Sealed {
                closing: closing.to_string(),
                n_written: *n_written,
            },
            Turn::Cut { of, n_kept, n_gone } => KeptTurn::Cut {
                of: Box::new(self.keep(of)),
                n_kept: *n_kept,
                n_gone: *n_gone,
            },
            Turn::Raw => KeptTurn::Raw,
        }
    }
}

impl KeptTurn {
    fn read(self, lists: &[Arc<ToolList>]) -> Result<Turn> {
        let list = |index: usize| {
            let list = lists.get(index).map(Arc::clone);
            list.ok_or_else(|| malformed("a list of tools is not there"))
        };
        Ok(match self {
            Self::Said {
                role,
                closing,
                tools,
                answer,
                plain_closing,
            } => {
                let role = ROLES.into_iter().find(|known| known.name() == role);
                let answer = answer.map(|it| Answer::new(&it.name, it.id.as_deref()));
                Turn::Said {
                    role: role.ok_or_else(|| malformed("a role is none"))?,
                    closing: closing.into(),
                    with: Particulars {
                        tools: tools.map(list).transpose()?,
                        answer: answer.transpose()?.map(Arc::new),
                        plain_closing: plain_closing.map(Into::into),
                    },
                }
            }
            Self::Tools { tools, written } => Turn::Tools {
                tools: list(tools)?,
                written,
            },
            Self::Open { whole } => Turn::Open { whole },
            Self::Sealed { closing, n_written } => Turn::Sealed {
                closing: closing.into(),
                n_written,
            },
            Self::Cut { of, n_kept, n_gone } => {
                // A cut of a cut is one cut.
                if matches!(*of, Self::Cut { .. }) {
                    return Err(malformed("a cut is one of a cut"));
                }
                Turn::Cut {
                    of: Box::new(of.read(lists)?),
                    n_kept,
                    n_gone,
                }
            }
            Self::Raw => Turn::Raw,
        })
    }
}

fn malformed(why: &str) -> Error {
    Error::Argument(format!("the state of a conversation cannot be read: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Arc<ToolList> {
        let schema = r#"{"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}"#;
        Arc::new(ToolList::parse(&[schema]).unwrap())
    }

    fn said(role: Role, with: Particulars) -> Turn {
        Turn::Said {
            role,
            closing: "<end>\n".into(),
            with,
        }
    }

    fn state() -> ChatState {
        let tools = tools();
        let given = Particulars {
            tools: Some(Arc::clone(&tools)),
            ..Particulars::default()
        };
        let answer = Particulars {
            answer: Some(Arc::new(Answer::new("look", Some("call00001")).unwrap())),
            plain_closing: Some("<end>".into()),
            ..Particulars::default()
        };
        let cut = Turn::Cut {
            of: Box::new(said(Role::User, given.clone())),
            n_kept: 2,
            n_gone: 7,
        };
        let turns = [
            Turn::Raw,
            Turn::Tools {
                tools,
                written: true,
            },
            said(Role::System, given),
            cut,
            Turn::Open { whole: true },
            Turn::Sealed {
                closing: "<end>".into(),
                n_written: 1,
            },
            said(Role::Tool, answer),
        ];
        ChatState::of_stretches((1..).zip(turns))
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        for state in [ChatState::new(), state()] {
            let bytes = state.to_bytes().unwrap();
            let read = ChatState::from_bytes(&bytes, 7).unwrap();
            assert_eq!(read, state);
            assert_eq!(read.n_bytes(), state.n_bytes());
            assert_eq!(read.to_bytes().unwrap(), bytes);
        }
    }

    #[test]
    fn a_list_of_tools_that_two_turns_have_is_kept_once() {
        let kept: Kept = serde_json::from_slice(&state().to_bytes().unwrap()).unwrap();
        assert_eq!(kept.tools.len(), 1);
    }

    #[test]
    fn what_is_no_state_is_an_error() {
        let turns = |turns: &str| format!(r#"{{"tools": [], "stretches": [{turns}]}}"#);
        let cut = r#"{"cut": {"of": {"cut": {"of": "raw", "n_kept": 1, "n_gone": 1}}, "n_kept": 1, "n_gone": 1}}"#;
        for text in [
            String::new(),
            "[]".to_owned(),
            r#"{"tools": [["{}"]], "stretches": []}"#.to_owned(),
            r#"{"tools": [[]], "stretches": []}"#.to_owned(),
            turns(r#"{"end": 8, "turn": "raw"}"#),
            turns(r#"{"end": 2, "turn": "raw"}, {"end": 1, "turn": "raw"}"#),
            turns(r#"{"end": 1, "turn": "other"}"#),
            turns(r#"{"end": 1, "turn": {"tools": {"tools": 0, "written": true}}}"#),
            turns(&format!(r#"{{"end": 1, "turn": {cut}}}"#)),
        ] {
            let refused = ChatState::from_bytes(text.as_bytes(), 7).unwrap_err();
            assert!(matches!(refused, Error::Argument(_)), "{text}: {refused}");
        }
    }
}
