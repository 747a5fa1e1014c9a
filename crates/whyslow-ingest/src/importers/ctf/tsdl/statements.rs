//! Blocks and top-level declarations.

use std::borrow::Cow;

use whyslow_model::stat::METADATA_DAMAGED;

use super::super::metadata::{Fault, Notes};
use super::lexer::Token;
use super::parser::Parser;
use super::syntax::{Attribute, Block, BlockKind, Value};

/// All blocks up to the end, or up to the statement in which the text is truncated.
pub(super) fn parse_text<'t>(
    text: &'t [u8],
    words: &'t str,
    notes: &mut Notes,
) -> Result<Vec<Block<'t>>, Fault> {
    let mut blocks = Vec::new();
    let mut statement = 0;
    let parser = Parser::new(text, words, notes);
    match parse_blocks(parser, &mut statement, &mut blocks) {
        Ok(()) => {}
        Err((fault, true)) => {
            let what = format!("the text ends inside a declaration: {}", fault.what);
            notes.add(&METADATA_DAMAGED, Fault::new(statement, what));
        }
        Err((fault, false)) => return Err(fault),
    }
    Ok(blocks)
}

/// The fault of the statement that starts at `statement`, and whether the text is truncated there.
fn parse_blocks<'t>(
    mut parser: Parser<'t, '_>,
    statement: &mut usize,
    blocks: &mut Vec<Block<'t>>,
) -> Result<(), (Fault, bool)> {
    while *parser.peek() != Token::End {
        *statement = parser.offset();
        match parser.statement() {
            Ok(Some(block)) => blocks.push(block),
            Ok(None) => {}
            Err(fault) => {
                let cut = parser.is_cut(&fault);
                return Err((fault, cut));
            }
        }
    }
    Ok(())
}

impl<'t> Parser<'t, '_> {
    fn statement(&mut self) -> Result<Option<Block<'t>>, Fault> {
        if self.eat(";") {
            return Ok(None);
        }
        if self.at_declaration() {
            self.declaration()?;
            return Ok(None);
        }
        let offset = self.offset();
        let word = self.expect_word("a block or a declaration")?;
        let kind = match word {
            "trace" => BlockKind::Trace,
            "env" => BlockKind::Environment,
            "clock" => BlockKind::Clock,
            "stream" => BlockKind::Stream,
            "event" => BlockKind::Event,
            _ => {
                // A callsite is the source location of an event, which is not used.
                self.skip_block()?;
                if word != "callsite" {
                    self.note_unknown(offset, format!("block `{word}`"));
                }
                return Ok(None);
            }
        };
        let attributes = self.block_body()?;
        Ok(Some(Block {
            kind,
            offset,
            attributes,
        }))
    }

    fn block_body(&mut self) -> Result<Vec<Attribute<'t>>, Fault> {
        self.expect("{")?;
        self.open_scope()?;
        let mut attributes = Vec::new();
        while !self.eat("}") {
            if self.at_declaration() {
                self.declaration()?;
                continue;
            }
            let offset = self.offset();
            self.count_declaration(offset)?;
            let name = self.attribute_name()?;
            let value = if self.eat(":=") {
                let class = self.type_specifier()?.class;
                self.expect(";")?;
                Value::Type(class)
            } else {
                self.expect("=")?;
                let value = self.plain_value()?;
                self.expect(";")?;
                value
            };
            attributes.push(Attribute {
                name,
                offset,
                value,
            });
        }
        self.close_scope();
        self.expect(";")?;
        Ok(attributes)
    }

    /// Names in the environment may also be quoted.
    fn attribute_name(&mut self) -> Result<Cow<'t, str>, Fault> {
        if let Token::Text(text) = *self.peek() {
            self.advance()?;
            return Ok(text.read());
        }
        self.dotted()
    }

    /// Skips a block by its braces.
    fn skip_block(&mut self) -> Result<(), Fault> {
        self.expect("{")?;
        let mut depth = 1_usize;
        while depth > 0 {
            match self.advance()? {
                (_, Token::Sign("{")) => depth += 1,
                (_, Token::Sign("}")) => depth -= 1,
                (offset, Token::End) => return Err(Fault::new(offset, "an unterminated block")),
                _ => {}
            }
        }
        self.eat(";");
        Ok(())
    }
}
