//! Templates are evaluated as `transformers` evaluates them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use pie_text::{Chat, ChatTemplate, ReasoningDecoder, ReasoningEvent, Role, SpecialTokens};
use serde_json::{Value, json};
use support::{CHATML, Context, byte_level, tokenizer};

/// What `source` writes around and for a message: the template must print its messages by `m.content`.
#[track_caller]
fn check(source: &str, text: &str) {
    let special = SpecialTokens::new([("bos_token", "<s>"), ("eos_token", "</s>")]);
    let template = ChatTemplate::at_time(source, special, 1_734_480_000).unwrap();
    let chat = Arc::new(Chat::new(tokenizer(&byte_level()), Some(template), vec![]));
    let mut context = Context::new(&chat);
    assert_eq!(context.user("x").text(), text);
}

/// The same for an expression, printed before every conversation.
#[track_caller]
fn check_expression(expression: &str, text: &str) {
    check(
        &format!(
            "{{{{ {expression} }}}}|{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}"
        ),
        &format!("{text}|x"),
    );
}

// rows: RS-042..044
#[test]
fn special_tokens_are_variables() {
    check_expression("bos_token + eos_token", "<s></s>");
    check_expression("pad_token is defined", "False");
    check_expression("tools is none and documents is none", "True");
}

#[test]
fn the_clock_can_be_fixed() {
    check_expression("strftime_now('%d %b %Y')", "18 Dec 2024");
}

// rows: RS-042..044
#[test]
fn loops_may_break_and_continue() {
    check(
        "{% for m in messages %}{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}\
         {% endfor %}{{ m.content }}{% endfor %}",
        "02x",
    );
}

// rows: RS-042..044
#[test]
fn generation_tags_are_tolerated() {
    check(
        "{% for m in messages %}{%- generation -%} {{ m.content }} {%- endgeneration -%}{% endfor %}{# {% generation %} #}",
        "x",
    );
}

// rows: RS-042..044
#[test]
fn blocks_are_trimmed_and_stripped() {
    check(
        "  {% for m in messages %}\n  {{ m.content }}\n  {% endfor %}\nend\n",
        "  x\nend",
    );
}

fn error_of(source: &str) -> String {
    let template = ChatTemplate::new(source, SpecialTokens::default()).unwrap();
    let chat = Chat::new(tokenizer(&byte_level()), Some(template), vec![]);
    let error = chat.message_tokens(Role::User, "x").unwrap_err();
    assert_eq!(error.code(), "template-error");
    error.to_string()
}

// rows: RS-042..044
#[test]
fn errors_tell_what_the_template_said() {
    assert!(
        error_of("{{ raise_exception('No users, please') }}")
            .ends_with("refused the conversation: No users, please")
    );
    assert!(
        error_of("{% macro f() %}{{ raise_exception('Deep') }}{% endmacro %}{{ f() }}")
            .contains("Deep")
    );
    assert!(error_of("\n{{ messages[0].content.nothing.at_all }}").contains("line 2"));
    assert!(error_of("{{ strftime_now('%Q') }}").contains("%Q"));
    let unparsable = ChatTemplate::new("{% for %}", SpecialTokens::default()).unwrap_err();
    assert_eq!(unparsable.code(), "template-error");
    assert!(
        unparsable.to_string().contains("does not parse"),
        "{unparsable}"
    );
}

// rows: RS-042..044
#[test]
fn renderings_are_bounded() {
    assert!(
        error_of(
            "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"
        )
        .contains("instructions")
    );
    let endless = "{% set ns = namespace(s='0123456789') %}{% for i in range(22) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}";
    assert!(error_of(endless).contains("bytes"));
    assert!(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").contains("recursion"));
}

// rows: RS-042..044
#[test]
fn what_a_rendering_looks_at_is_bounded_though_it_writes_little() {
    let many = |looked: &str| {
        error_of(&format!(
            "{{% set l = range(10000)|list %}}{{% set t = 'abc ' * 9000 %}}\
             {{% for i in range(10000) %}}{{{{ {looked} }}}}{{% endfor %}}"
        ))
    };
    for looked in [
        "l|min",
        "l|sum|abs",
        "(l|batch(10000)|first|first)",
        "(t|lower|length)",
        "loop.changed(l)",
    ] {
        let error = many(looked);
        assert!(error.contains("bytes"), "{looked}: {error}");
    }
}

#[test]
fn what_a_source_may_need_of_a_compiler_is_bounded() {
    let compile = |source: &str| ChatTemplate::new(source, SpecialTokens::default());
    for source in [
        format!("{{{{ {}1 }}}}", "not ".repeat(100_000)),
        format!("{{{{ {}1 }}}}", "1+".repeat(100_000)),
        format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(30_000)),
        "{{ 'a' * 100000000 }}".to_owned(),
        "{{ 7 in [1] * 10 ** 18 }}".to_owned(),
        "x".repeat(2 << 20),
    ] {
        let error = compile(&source).unwrap_err();
        assert_eq!(error.code(), "template-error");
        assert!(error.to_string().contains("too large"), "{error}");
    }
    // The deepest that are compiled.
    for source in [
        format!("{{{{ {}1 }}}}", "not ".repeat(4_090)),
        format!("{{{{ x{} }}}}", "+1".repeat(2_040)),
        format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(16_000)),
        "{{ '-' * 80 }}".to_owned(),
    ] {
        compile(&source).unwrap();
    }
}

// rows: RS-042..044
#[test]
fn values_are_bounded_in_depth_and_hold_no_namespace() {
    let nested = |value: &str| {
        error_of(&format!(
            "{{% set ns = namespace(s=[]) %}}{{% for i in range(1000) %}}{{% set ns.s = {value} %}}{{% endfor %}}"
        ))
    };
    assert!(nested("[ns.s]").contains("nested deeper than the limit of 100"));
    assert!(nested("{'a': ns.s}").contains("nested deeper than the limit of 100"));
    assert!(nested("ns.s|batch(1)|list + [ns.s]").contains("limit"));
    let remembered = |value: &str| {
        error_of(&format!(
            "{{% set ns = namespace(s=[]) %}}{{% for i in range(2) %}}{{{{ loop.changed(1, {value}) }}}}{{% endfor %}}"
        ))
    };
    for value in ["ns", "[ns]", "loop", "{'a': [loop]}", "namespace(a=ns)"] {
        for error in [nested(value), remembered(value)] {
            assert!(
                error.contains("cannot keep a namespace or a loop"),
                "{value}: {error}"
            );
        }
    }
}

// rows: RS-042..044
#[test]
fn what_python_writes_for_lists_is_written_however_they_were_made() {
    check_expression("[1, 2][0:]", "[1, 2]");
    check_expression("['a'] + ['b']", "['a', 'b']");
    check_expression("(['a'] + ['b'])[::-1]", "['b', 'a']");
    check_expression("['a'] * 2", "['a', 'a']");
    check_expression("{'a': 1}.items()", "[['a', 1]]");
    check_expression("'abc'.count('')", "4");
    check_expression("'a' ~ 1 ~ none", "a1None");
    check_expression(
        "[1 < 2 < 3, 1 in [1], 'a' in {'a': 1}]",
        "[True, True, True]",
    );
    check_expression(
        "[{'a': {'b': 'c'}}['a']['b'], 'abc'[1], [1, 2][-1]]",
        "['c', 'b', 2]",
    );
    check_expression("dict(a=1, **{'b': 2})", "{'a': 1, 'b': 2}");
}

#[test]
fn what_a_template_says_of_an_error_is_shortened() {
    let said = error_of("{% set k = 100000 %}{{ raise_exception('a' * k) }}");
    assert!(said.len() < 3000, "{}", said.len());
    assert!(said.ends_with("a ..."));
}

/// A model directory of its own, removed when dropped.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str, files: &[(&str, Value)]) -> Self {
        let dir = std::env::temp_dir().join(format!("pie-text-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("tokenizer.json"), byte_level().to_string()).unwrap();
        for (file, content) in files {
            let text = content
                .as_str()
                .map_or_else(|| content.to_string(), ToOwned::to_owned);
            fs::write(dir.join(file), text).unwrap();
        }
        Self(dir)
    }

    fn said(&self) -> String {
        let chat = Arc::new(Chat::from_dir(&self.0, 0).unwrap());
        Context::new(&chat).user("x").text()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

// rows: RS-042..044
#[test]
fn a_template_is_found_where_checkpoints_keep_it() {
    let template = |word: &str| {
        json!(format!(
            "{word}{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}"
        ))
    };
    let text = Dir::new(
        "text",
        &[(
            "tokenizer_config.json",
            json!({"chat_template": template("one ")}),
        )],
    );
    assert_eq!(text.said(), "one x");
    let named = json!([{"name": "tool_use", "template": template("no ")}, {"name": "default", "template": template("two ")}]);
    let list = Dir::new(
        "list",
        &[("tokenizer_config.json", json!({"chat_template": named}))],
    );
    assert_eq!(list.said(), "two x");
    let jinja = Dir::new(
        "jinja",
        &[
            ("chat_template.jinja", template("three ")),
            (
                "tokenizer_config.json",
                json!({"chat_template": template("no ")}),
            ),
        ],
    );
    assert_eq!(jinja.said(), "three x");
    let json = Dir::new(
        "json",
        &[(
            "chat_template.json",
            json!({"chat_template": template("four ")}),
        )],
    );
    assert_eq!(json.said(), "four x");
}

// rows: RS-042..044
#[test]
fn special_tokens_may_be_texts_or_objects() {
    let template =
        json!("{{ bos_token }}{{ eos_token }}{% for m in messages %}{{ m.content }}{% endfor %}");
    let config = json!({"chat_template": template, "bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "unk_token": null});
    assert_eq!(
        Dir::new("special", &[("tokenizer_config.json", config)]).said(),
        "<s></s>x"
    );
    let map = json!({"bos_token": "<s>", "eos_token": {"content": "</s>"}});
    let dir = Dir::new(
        "map",
        &[
            ("tokenizer_config.json", json!({"chat_template": template})),
            ("special_tokens_map.json", map),
        ],
    );
    assert_eq!(dir.said(), "<s></s>x");
}

#[test]
fn end_tokens_come_from_the_configuration() {
    let end = |name: &str, files: &[(&str, Value)]| {
        let dir = Dir::new(name, files);
        Chat::from_dir(&dir.0, 0).map(|chat| chat.end_tokens().to_vec())
    };
    assert_eq!(
        end(
            "list",
            &[("generation_config.json", json!({"eos_token_id": [3, 4]}))]
        )
        .unwrap(),
        [3, 4]
    );
    let files = [
        ("generation_config.json", json!({})),
        ("config.json", json!({"eos_token_id": 5})),
    ];
    assert_eq!(end("one", &files).unwrap(), [5]);
    assert!(end("none", &[]).unwrap().is_empty());
    let id = tokenizer(&byte_level()).encode("</s>").unwrap();
    assert_eq!(
        end(
            "text",
            &[("tokenizer_config.json", json!({"eos_token": "</s>"}))]
        )
        .unwrap(),
        id
    );
    for bad in [json!(999_999), json!(-1), json!("</s>"), json!([null])] {
        let error = end(
            "bad",
            &[("generation_config.json", json!({"eos_token_id": bad}))],
        )
        .unwrap_err();
        assert_eq!(error.code(), "invalid-model");
        assert!(
            error.to_string().contains("generation_config.json"),
            "{error}"
        );
    }
}

#[test]
fn damaged_files_are_named() {
    for file in [
        "tokenizer_config.json",
        "generation_config.json",
        "special_tokens_map.json",
        "config.json",
    ] {
        for content in ["{", "[]", "\"\""] {
            let dir = Dir::new("damaged", &[(file, json!(content))]);
            let error = Chat::from_dir(&dir.0, 0).unwrap_err();
            assert_eq!(error.code(), "invalid-model");
            assert!(
                error.to_string().contains(file) && error.to_string().contains("damaged"),
                "{error}"
            );
        }
    }
}

/// A checkpoint with this `response_template`.
fn responding(name: &str, response: &Value) -> Dir {
    let config = json!({"chat_template": CHATML, "response_template": response});
    Dir::new(name, &[("tokenizer_config.json", config)])
}

// rows: RS-174
#[test]
fn the_checkpoint_says_between_which_markers_a_thought_stands() {
    for (name, field) in [
        ("open", json!({"open": "(t)", "close": "(/t)"})),
        (
            "open-list",
            json!({"open": ["(t)\n", "(thought)"], "close": ["(/t)"]}),
        ),
        (
            "open-pattern",
            json!({"open_pattern": r"\(t\)", "close_pattern": r"\(/t\)"}),
        ),
    ] {
        for key in ["thinking", "reasoning_content"] {
            let response = json!({"version": 1, "start_anchor": "assistant\n", "fields": {key: field, "content": {}}});
            let dir = responding(name, &response);
            let chat = Arc::new(Chat::from_dir(&dir.0, 0).unwrap());
            let mut decoder = ReasoningDecoder::new(Arc::clone(&chat));
            let tokens = chat.tokenizer().encode("(t)hm(/t)4.").unwrap();
            let mut event = decoder.feed(&tokens).unwrap();
            let mut thought = None;
            while event != ReasoningEvent::Idle {
                if let ReasoningEvent::End(text) = &event {
                    thought = Some(text.clone());
                }
                event = decoder.feed(&[]).unwrap();
            }
            assert_eq!(thought.as_deref(), Some("hm"), "{response}");
        }
    }
}

#[test]
fn a_response_template_that_is_none_is_said_by_the_chat_calls() {
    for (response, why) in [
        (json!("text"), "it is \"text\"; it is an object"),
        (json!({"version": 2}), "its version is 2"),
        (
            json!({"fields": {"thinking": {"open": 5}}}),
            "its field \"thinking\" has 5 as `open`",
        ),
    ] {
        let dir = responding("no-response", &response);
        let chat = Chat::from_dir(&dir.0, 0).unwrap();
        let error = chat.cue_tokens().unwrap_err();
        assert_eq!(error.code(), "template-error");
        for words in [why, "tokenizer_config.json", "take it out"] {
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

#[test]
fn a_model_whose_template_cannot_be_used_can_be_used_without() {
    let named = json!([{"name": "rag", "template": CHATML}]);
    for template in [json!("{% for %}"), named] {
        let dir = Dir::new(
            "unusable",
            &[("tokenizer_config.json", json!({"chat_template": template}))],
        );
        let chat = Chat::from_dir(&dir.0, 0).unwrap();
        assert_eq!(chat.cue_tokens().unwrap_err().code(), "template-error");
        assert_eq!(chat.tokenizer().encode("a").unwrap().len(), 1);
    }
}

// rows: RS-031
#[test]
fn tokens_that_the_configuration_names_are_control_tokens() {
    let config = json!({"chat_template": CHATML, "eos_token": "<|turn|>"});
    let dir = Dir::new("named", &[("tokenizer_config.json", config)]);
    let chat = Chat::from_dir(&dir.0, 0).unwrap();
    let turn = chat.tokenizer().encode("<|turn|>").unwrap();
    assert!(chat.tokenizer().is_control(turn[0]));
    assert_eq!(chat.end_tokens(), turn);
    let said = chat.message_tokens(Role::User, "<|turn|>").unwrap();
    assert!(!said.contains(&turn[0]));
}
