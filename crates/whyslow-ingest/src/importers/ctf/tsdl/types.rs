//! Type specifiers and declarators.

use std::borrow::Cow;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::super::class::{Mapping, Range};
use super::super::metadata::{CLASS_DEPTH_MAX, Fault};
use super::attributes;
use super::lexer::Token;
use super::parser::Parser;
use super::syntax::{Field, IntegerType, Kind, Reference, Type};

/// Words that C type names consist of; a name contains any number of them or one other word.
const C_TYPE_WORDS: [&str; 12] = [
    "void",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "signed",
    "unsigned",
    "_Bool",
    "_Complex",
    "_Imaginary",
];

/// A type and, if it has one, the name under which its pointers are declared.
pub(super) struct Specified<'t> {
    pub(super) class: Type<'t>,
    name: Option<Cow<'t, str>>,
}

impl<'t> Parser<'t, '_> {
    pub(super) fn type_specifier(&mut self) -> Result<Specified<'t>, Fault> {
        if self.nesting >= CLASS_DEPTH_MAX {
            let what = format!("types nested in more than {CLASS_DEPTH_MAX} levels");
            return Err(Fault::new(self.offset(), what));
        }
        self.nesting += 1;
        self.skip_const()?;
        let specified = match *self.peek() {
            Token::Word("struct") => self.struct_specifier(),
            Token::Word("variant") => self.variant_specifier(),
            Token::Word("enum") => self.enum_specifier(),
            Token::Word("integer") => self.integer_specifier(),
            Token::Word("floating_point") => self.float_specifier(),
            Token::Word("string") => self.text_specifier(),
            Token::Word(_) => self.named_specifier(),
            _ => Err(self.unexpected("a type")),
        };
        self.nesting -= 1;
        specified
    }

    /// Whether the next token starts a type declaration rather than an attribute.
    pub(super) fn at_declaration(&self) -> bool {
        let words = ["typealias", "typedef", "struct", "variant", "enum"];
        words.iter().any(|word| self.at_word(word))
    }

    /// A declaration that is not a field: `typealias`, `typedef`, or a named type.
    pub(super) fn declaration(&mut self) -> Result<(), Fault> {
        if self.at_word("typealias") {
            self.type_alias()
        } else if self.at_word("typedef") {
            self.advance()?;
            let specified = self.type_specifier()?;
            let mut declared = Vec::new();
            self.declarators(&specified, &mut declared)?;
            for Field { name, class } in declared {
                self.declare(name.into(), class);
            }
            Ok(())
        } else {
            self.type_specifier()?;
            self.expect(";")
        }
    }

    /// `typealias TYPE := NAME;`, where the name may be several words and stars.
    fn type_alias(&mut self) -> Result<(), Fault> {
        self.advance()?;
        let specified = self.type_specifier()?;
        let class = self.pointers(&specified)?;
        let class = self.array_suffixes(class)?;
        self.expect(":=")?;
        self.skip_const()?;
        let mut name = Cow::Borrowed(self.expect_word("the name of a type")?);
        loop {
            self.skip_const()?;
            if let Token::Word(word) = *self.peek() {
                let name = name.to_mut();
                name.push(' ');
                name.push_str(word);
                self.advance()?;
            } else if self.eat("*") {
                name.to_mut().push_str(" *");
            } else {
                break;
            }
        }
        self.expect(";")?;
        self.declare(name, class);
        Ok(())
    }

    /// `const` has no effect on a recorded value.
    fn skip_const(&mut self) -> Result<(), Fault> {
        while self.at_word("const") {
            self.advance()?;
        }
        Ok(())
    }

    fn named_specifier(&mut self) -> Result<Specified<'t>, Fault> {
        let offset = self.offset();
        let mut name = Cow::Borrowed("");
        while let Token::Word(word) = *self.peek() {
            if !name.is_empty() && !C_TYPE_WORDS.contains(&word) {
                break;
            }
            if name.is_empty() {
                name = Cow::Borrowed(word);
            } else {
                let name = name.to_mut();
                name.push(' ');
                name.push_str(word);
            }
            self.advance()?;
            self.skip_const()?;
            if !C_TYPE_WORDS.contains(&word) {
                break;
            }
        }
        let class = self.lookup(&name, offset)?;
        Ok(Specified {
            class,
            name: Some(name),
        })
    }

    fn lookup(&mut self, name: &str, offset: usize) -> Result<Type<'t>, Fault> {
        match self.find_declared(name) {
            Some(class) => Ok(class),
            None => self.make_type(offset, 1, Kind::Unknown(name.to_owned())),
        }
    }

    fn integer_specifier(&mut self) -> Result<Specified<'t>, Fault> {
        if let Some(class) = self.cached_integer()? {
            return Ok(Specified { class, name: None });
        }
        let (offset, notes) = (self.offset(), self.notes());
        self.advance()?;
        let (listed, end) = self.plain_attributes()?;
        let integer = attributes::integer_type(self, offset, &listed)?;
        let specified = self.unnamed(offset, 1, Kind::Integer(integer))?;
        // Anomalies are noted at each occurrence, so only types without any are cached.
        if self.notes() == notes {
            self.remember_integer(&specified.class, end);
        }
        Ok(specified)
    }

    fn float_specifier(&mut self) -> Result<Specified<'t>, Fault> {
        let offset = self.offset();
        self.advance()?;
        let (listed, _) = self.plain_attributes()?;
        let kind = attributes::float_type(self, offset, &listed)?;
        self.unnamed(offset, 1, kind)
    }

    fn text_specifier(&mut self) -> Result<Specified<'t>, Fault> {
        let offset = self.offset();
        self.advance()?;
        if self.at_sign("{") {
            let (listed, _) = self.plain_attributes()?;
            attributes::check_text(self, &listed);
        }
        self.unnamed(offset, 1, Kind::Text)
    }

    fn unnamed(
        &mut self,
        offset: usize,
        depth: u16,
        kind: Kind<'t>,
    ) -> Result<Specified<'t>, Fault> {
        let class = self.make_type(offset, depth, kind)?;
        Ok(Specified { class, name: None })
    }

    /// The name after `struct`, `variant` or `enum`, including the keyword.
    fn tagged_name(&mut self, keyword: &str) -> Result<Option<Cow<'t, str>>, Fault> {
        self.advance()?;
        match *self.peek() {
            Token::Word(word) => {
                self.advance()?;
                Ok(Some(format!("{keyword} {word}").into()))
            }
            _ => Ok(None),
        }
    }

    fn struct_specifier(&mut self) -> Result<Specified<'t>, Fault> {
        let offset = self.offset();
        let name = self.tagged_name("struct")?;
        if !self.at_sign("{") {
            return self.declared_before(name, offset);
        }
        let (members, depth) = self.fields()?;
        let alignment = if self.at_word("align") {
            self.advance()?;
            self.expect("(")?;
            let at = self.offset();
            let value = self.integer()?;
            self.expect(")")?;
            attributes::alignment(value, at)?
        } else {
            1
        };
        let kind = Kind::Struct { members, alignment };
        let class = self.make_type(offset, depth, kind)?;
        Ok(self.declare_tagged(name, class))
    }

    fn variant_specifier(&mut self) -> Result<Specified<'t>, Fault> {
        let offset = self.offset();
        let name = self.tagged_name("variant")?;
        let mut tag = None;
        if self.eat("<") {
            let at = self.offset();
            tag = Some(Reference {
                offset: at,
                dotted: self.dotted()?,
            });
            self.expect(">")?;
        }
        if self.at_sign("{") {
            let (options, depth) = self.fields()?;
            let options = options.into();
            let class = self.make_type(offset, depth, Kind::Variant { tag, options })?;
            return Ok(self.declare_tagged(name, class));
        }
        let declared = self.declared_before(name, offset)?;
        match (declared.class.kind.as_ref(), tag) {
            (Kind::Variant { options, .. }, tag @ Some(_)) => {
                let kind = Kind::Variant {
                    tag,
                    options: Rc::clone(options),
                };
                self.unnamed(offset, declared.class.depth, kind)
            }
            _ => Ok(declared),
        }
    }

    fn enum_specifier(&mut self) -> Result<Specified<'t>, Fault> {
        let offset = self.offset();
        let name = self.tagged_name("enum")?;
        let container = if self.eat(":") {
            Some(self.type_specifier()?.class)
        } else {
            None
        };
        if !self.at_sign("{") {
            return self.declared_before(name, offset);
        }
        let mappings = self.mappings()?;
        let container = match container {
            Some(container) => container,
            None => self.lookup("int", offset)?,
        };
        let kind = match integer_of(&container) {
            Some(container) => Kind::Enumeration {
                container: container.clone(),
                mappings,
            },
            None => Kind::Unknown("the integer of an enumeration".to_owned()),
        };
        let class = self.make_type(offset, 1, kind)?;
        Ok(self.declare_tagged(name, class))
    }

    fn declared_before(
        &mut self,
        name: Option<Cow<'t, str>>,
        offset: usize,
    ) -> Result<Specified<'t>, Fault> {
        let Some(name) = name else {
            return Err(self.unexpected("`{`"));
        };
        let class = self.lookup(&name, offset)?;
        Ok(Specified {
            class,
            name: Some(name),
        })
    }

    fn declare_tagged(&mut self, name: Option<Cow<'t, str>>, class: Type<'t>) -> Specified<'t> {
        if let Some(name) = &name {
            self.declare(name.clone(), class.clone());
        }
        Specified { class, name }
    }

    /// `{ TYPE NAME; … }` of a structure or variant, and the nesting depth.
    fn fields(&mut self) -> Result<(Vec<Field<'t>>, u16), Fault> {
        self.expect("{")?;
        self.open_scope()?;
        let mut fields = Vec::new();
        while !self.eat("}") {
            if self.at_word("typealias") || self.at_word("typedef") {
                self.declaration()?;
                continue;
            }
            let specified = self.type_specifier()?;
            if self.eat(";") {
                continue;
            }
            self.declarators(&specified, &mut fields)?;
        }
        self.close_scope();
        let depths = fields.iter().map(|field| field.class.depth);
        let depth = depths.max().unwrap_or(0) + 1;
        Ok((fields, depth))
    }

    /// `*a, b[4], …;` after a type.
    fn declarators(
        &mut self,
        specified: &Specified<'t>,
        declared: &mut Vec<Field<'t>>,
    ) -> Result<(), Fault> {
        loop {
            let class = self.pointers(specified)?;
            let offset = self.offset();
            let name = self.expect_word("the name of a field")?;
            self.count_declaration(offset)?;
            let class = self.array_suffixes(class)?;
            declared.push(Field { name, class });
            if !self.eat(",") {
                break;
            }
        }
        self.expect(";")
    }

    fn pointers(&mut self, specified: &Specified<'t>) -> Result<Type<'t>, Fault> {
        if !self.at_sign("*") {
            return Ok(specified.class.clone());
        }
        let offset = self.offset();
        let mut name = specified.name.clone().unwrap_or_default();
        while self.eat("*") {
            name.to_mut().push_str(" *");
            self.skip_const()?;
        }
        self.lookup(&name, offset)
    }

    /// `[4][length]`: as in C, the first is the outermost.
    fn array_suffixes(&mut self, class: Type<'t>) -> Result<Type<'t>, Fault> {
        enum Length<'t> {
            Constant(u64),
            Field(Reference<'t>),
        }
        let mut lengths = Vec::new();
        while self.at_sign("[") {
            let offset = self.advance()?.0;
            if lengths.len() >= CLASS_DEPTH_MAX as usize {
                return Err(Fault::new(offset, "an array with too many dimensions"));
            }
            let length = if let Token::Integer(length) = *self.peek() {
                self.advance()?;
                Length::Constant(length)
            } else {
                Length::Field(Reference {
                    offset: self.offset(),
                    dotted: self.dotted()?,
                })
            };
            self.expect("]")?;
            lengths.push((offset, length));
        }
        let mut class = class;
        for (offset, length) in lengths.into_iter().rev() {
            let depth = class.depth + 1;
            let element = class;
            let kind = match length {
                Length::Constant(length) => Kind::Array { element, length },
                Length::Field(length) => Kind::Sequence { element, length },
            };
            class = self.make_type(offset, depth, kind)?;
        }
        Ok(class)
    }

    /// `{ label, label = value, label = first ... last }`
    fn mappings(&mut self) -> Result<Vec<Mapping>, Fault> {
        self.expect("{")?;
        let mut mappings: Vec<Mapping> = Vec::new();
        let mut places: FxHashMap<Cow<'t, str>, usize> = FxHashMap::default();
        let mut first = 0;
        while !self.eat("}") {
            let offset = self.offset();
            self.count_declaration(offset)?;
            let label = match self.advance()?.1 {
                Token::Word(word) => word.into(),
                Token::Text(text) => text.read(),
                other => {
                    let what = format!("expected a label, found {other}");
                    return Err(Fault::new(offset, what));
                }
            };
            let mut last = first;
            if self.eat("=") {
                first = self.integer()?;
                last = first;
                if self.eat("...") {
                    last = self.integer()?;
                }
            }
            if last < first {
                let what = format!("the range {first} ... {last} is descending");
                return Err(Fault::new(offset, what));
            }
            let range = Range { first, last };
            first = last + 1;
            if let Some(&place) = places.get(&label) {
                mappings[place].ranges.push(range);
            } else {
                let ranges = vec![range];
                mappings.push(Mapping {
                    label: label.clone().into_owned(),
                    ranges,
                });
                places.insert(label, mappings.len() - 1);
            }
            if !self.eat(",") && !self.at_sign("}") {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
        Ok(mappings)
    }
}

fn integer_of<'c>(class: &'c Type<'_>) -> Option<&'c IntegerType> {
    match class.kind.as_ref() {
        Kind::Integer(integer) => Some(integer),
        _ => None,
    }
}
