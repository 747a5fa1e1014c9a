//! Parser state: lookahead tokens, names in scope, and helpers for blocks and types.

use std::borrow::Cow;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use whyslow_model::stat::METADATA_UNKNOWN;

use super::super::metadata::{CLASS_DEPTH_MAX, Fault, Notes};
use super::lexer::{Lexer, Token};
use super::syntax::{Attribute, Kind, Type, Value};

/// Maximum number of declared types, fields and labels; all system calls of a kernel need a few
/// thousand.
const DECLARATIONS_MAX: usize = 1 << 19;
/// Maximum nesting of blocks; no known block is nested, and unknown ones are skipped by counting.
const SCOPES_MAX: usize = 4 + CLASS_DEPTH_MAX as usize;

pub(super) struct Parser<'t, 'n> {
    lexer: Lexer<'t>,
    ahead: (usize, Token<'t>),
    /// Innermost last. A tagged name is `struct foo`, `enum foo`, `variant foo`; others are stored
    /// as they are, with single spaces between the words.
    scopes: Vec<FxHashMap<Cow<'t, str>, Type<'t>>>,
    /// By the text of `integer { … }`; a tracer repeats a few of them thousands of times.
    integers: FxHashMap<&'t [u8], Rc<Kind<'t>>>,
    declarations: usize,
    pub(super) nesting: u16,
    notes: &'n mut Notes,
}

impl<'t, 'n> Parser<'t, 'n> {
    pub(super) fn new(text: &'t [u8], words: &'t str, notes: &'n mut Notes) -> Parser<'t, 'n> {
        let mut lexer = Lexer::new(text, words);
        let ahead = lexer.next();
        Parser {
            lexer,
            ahead,
            scopes: vec![FxHashMap::default()],
            integers: FxHashMap::default(),
            declarations: 0,
            nesting: 0,
            notes,
        }
    }

    /// Whether the text ends at the fault, so that it is likely truncated rather than wrong.
    pub(super) fn is_cut(&self, fault: &Fault) -> bool {
        fault.offset >= self.lexer.text().len() || self.lexer.is_at_end()
    }

    pub(super) fn offset(&self) -> usize {
        self.ahead.0
    }

    pub(super) fn peek(&self) -> &Token<'t> {
        &self.ahead.1
    }

    pub(super) fn advance(&mut self) -> Result<(usize, Token<'t>), Fault> {
        if let Token::Bad(what) = self.ahead.1 {
            return Err(Fault::new(self.ahead.0, what.to_string()));
        }
        Ok(self.step())
    }

    /// Takes the lookahead token, which is known to be valid.
    fn step(&mut self) -> (usize, Token<'t>) {
        let next = self.lexer.next();
        std::mem::replace(&mut self.ahead, next)
    }

    #[inline]
    pub(super) fn at_sign(&self, sign: &str) -> bool {
        matches!(self.ahead.1, Token::Sign(ahead) if ahead == sign)
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        matches!(self.ahead.1, Token::Word(ahead) if ahead == word)
    }

    /// Takes the punctuation if it comes next.
    #[inline]
    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let found = self.at_sign(sign);
        if found {
            self.step();
        }
        found
    }

    #[inline]
    pub(super) fn expect(&mut self, sign: &str) -> Result<(), Fault> {
        if self.eat(sign) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{sign}`")))
    }

    pub(super) fn expect_word(&mut self, expected: &str) -> Result<&'t str, Fault> {
        match self.ahead.1 {
            Token::Word(word) => {
                self.step();
                Ok(word)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    pub(super) fn unexpected(&self, expected: &str) -> Fault {
        let found = &self.ahead.1;
        Fault::new(self.ahead.0, format!("expected {expected}, found {found}"))
    }

    pub(super) fn open_scope(&mut self) -> Result<(), Fault> {
        if self.scopes.len() >= SCOPES_MAX {
            return Err(Fault::new(self.offset(), "blocks nested too deeply"));
        }
        self.scopes.push(FxHashMap::default());
        Ok(())
    }

    pub(super) fn close_scope(&mut self) {
        self.scopes.pop();
    }

    /// A later declaration of a name hides an earlier one from there on.
    pub(super) fn declare(&mut self, name: Cow<'t, str>, class: Type<'t>) {
        let scope = self.scopes.last_mut().expect("the outermost scope stays");
        scope.insert(name, class);
    }

    pub(super) fn find_declared(&self, name: &str) -> Option<Type<'t>> {
        let mut scopes = self.scopes.iter().rev();
        scopes.find_map(|scope| scope.get(name)).cloned()
    }

    pub(super) fn make_type(
        &mut self,
        offset: usize,
        depth: u16,
        kind: Kind<'t>,
    ) -> Result<Type<'t>, Fault> {
        self.share_type(offset, depth, Rc::new(kind))
    }

    fn share_type(
        &mut self,
        offset: usize,
        depth: u16,
        kind: Rc<Kind<'t>>,
    ) -> Result<Type<'t>, Fault> {
        self.count_declaration(offset)?;
        if depth > CLASS_DEPTH_MAX {
            let what = format!("a type nested in more than {CLASS_DEPTH_MAX} levels");
            return Err(Fault::new(offset, what));
        }
        Ok(Type {
            offset,
            depth,
            kind,
        })
    }

    pub(super) fn count_declaration(&mut self, offset: usize) -> Result<(), Fault> {
        self.declarations += 1;
        if self.declarations > DECLARATIONS_MAX {
            let what = format!("more than {DECLARATIONS_MAX} declarations");
            return Err(Fault::new(offset, what));
        }
        Ok(())
    }

    pub(super) fn note_unknown(&mut self, offset: usize, what: String) {
        self.notes.add(&METADATA_UNKNOWN, Fault::new(offset, what));
    }

    /// The integer at the next token, if the same bytes were parsed before.
    ///
    /// A text that ends with punctuation is parsed independently of what follows.
    pub(super) fn cached_integer(&mut self) -> Result<Option<Type<'t>>, Fault> {
        let (offset, _) = self.ahead;
        let Some(written) = up_to_brace(&self.lexer.text()[offset..]) else {
            return Ok(None);
        };
        let Some(kind) = self.integers.get(written) else {
            return Ok(None);
        };
        let kind = Rc::clone(kind);
        self.lexer.skip_to(offset + written.len());
        self.step();
        self.share_type(offset, 1, kind).map(Some)
    }

    /// Caches an integer that ended just now without anomalies.
    pub(super) fn remember_integer(&mut self, integer: &Type<'t>, end: usize) {
        let written = &self.lexer.text()[integer.offset..end];
        if up_to_brace(written) == Some(written) {
            self.integers.insert(written, Rc::clone(&integer.kind));
        }
    }

    pub(super) fn notes(&self) -> usize {
        self.notes.len()
    }

    /// `{ name = value; … }` of a type without nested content. Also returns the end of the closing
    /// brace.
    pub(super) fn plain_attributes(&mut self) -> Result<(Vec<Attribute<'t>>, usize), Fault> {
        self.expect("{")?;
        let mut attributes = Vec::new();
        while !self.at_sign("}") {
            let offset = self.offset();
            let name = self.dotted()?;
            self.expect("=")?;
            let value = self.plain_value()?;
            self.expect(";")?;
            attributes.push(Attribute {
                name,
                offset,
                value,
            });
        }
        let (brace, _) = self.advance()?;
        Ok((attributes, brace + 1))
    }

    pub(super) fn plain_value(&mut self) -> Result<Value<'t>, Fault> {
        match self.ahead.1 {
            Token::Word(_) => Ok(Value::Word(self.dotted()?)),
            Token::Text(text) => {
                self.step();
                Ok(Value::Text(text.read()))
            }
            Token::Integer(_) | Token::Sign("-" | "+") => Ok(Value::Integer(self.integer()?)),
            _ => Err(self.unexpected("a value")),
        }
    }

    pub(super) fn integer(&mut self) -> Result<i128, Fault> {
        let negative = self.eat("-");
        if !negative {
            self.eat("+");
        }
        let Token::Integer(value) = self.ahead.1 else {
            return Err(self.unexpected("an integer"));
        };
        self.step();
        let value = i128::from(value);
        Ok(if negative { -value } else { value })
    }

    /// Words separated by dots, joined again.
    pub(super) fn dotted(&mut self) -> Result<Cow<'t, str>, Fault> {
        let mut name = Cow::Borrowed(self.expect_word("a name")?);
        while self.eat(".") {
            let name = name.to_mut();
            name.push('.');
            name.push_str(self.expect_word("a name")?);
        }
        Ok(name)
    }
}

/// Up to and including the first closing brace.
fn up_to_brace(text: &[u8]) -> Option<&[u8]> {
    memchr::memchr(b'}', text).map(|place| &text[..=place])
}
