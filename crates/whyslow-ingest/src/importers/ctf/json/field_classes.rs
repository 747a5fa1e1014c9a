//! Field classes and the locations they refer to.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use whyslow_model::stat::METADATA_UNKNOWN;

use super::super::class::{
    BitOrder, ByteOrder, FieldClass, FieldLocation, IntegerClass, IntegerKind, Mapping, Range,
    Role, Scope, StructClass, VariantOption,
};
use super::super::field_lookup::{FieldLookup, VariantStep};
use super::super::metadata::{CLASS_DEPTH_MAX, Fault, FieldBudget, Notes, STRUCT_MEMBERS_MAX};
use super::properties::{
    alignment, bit_order, bits, byte_order, encoding, fixed_float, is_integer, role,
    scope_of_origin, steps,
};
use super::tree::{Json, Object};

/// Named field classes. A class may only use names defined before it.
#[derive(Default)]
pub(super) struct Aliases {
    places: FxHashMap<String, usize>,
    classes: Vec<Rc<Json>>,
}

impl Aliases {
    pub(super) fn add(&mut self, name: &str, class: Rc<Json>) -> Result<(), String> {
        let place = self.classes.len();
        if self.places.insert(name.to_owned(), place).is_some() {
            return Err(format!("duplicate field class alias `{name}`"));
        }
        self.classes.push(class);
        Ok(())
    }
}

pub(super) struct ClassReader<'c> {
    pub(super) lookup: FieldLookup<'c>,
    aliases: &'c Aliases,
    /// Number of aliases that may be used here.
    visible: usize,
    budget: &'c FieldBudget,
    notes: &'c mut Notes,
    /// Offset of the fragment.
    offset: usize,
    clock: Option<usize>,
    depth: u16,
}

impl<'c> ClassReader<'c> {
    pub(super) fn new(
        aliases: &'c Aliases,
        budget: &'c FieldBudget,
        notes: &'c mut Notes,
        offset: usize,
        clock: Option<usize>,
    ) -> ClassReader<'c> {
        ClassReader {
            lookup: FieldLookup::new(VariantStep::Selected),
            visible: aliases.classes.len(),
            aliases,
            budget,
            notes,
            offset,
            clock,
            depth: 0,
        }
    }

    pub(super) fn scope(&mut self, scope: Scope, json: &Json) -> Result<StructClass, String> {
        self.lookup.begin_scope(scope);
        self.depth = 0;
        match self.class(json)? {
            FieldClass::Struct(class) => Ok(class),
            _ => Err("the class of a scope is not a structure".to_owned()),
        }
    }

    fn class(&mut self, json: &Json) -> Result<FieldClass, String> {
        let spent = self.budget.spend(1, self.offset);
        spent.map_err(|fault| fault.what)?;
        if self.depth >= CLASS_DEPTH_MAX {
            return Err(format!(
                "classes nested in more than {CLASS_DEPTH_MAX} levels"
            ));
        }
        self.depth += 1;
        let class = match json {
            Json::Text(name) => self.alias(name),
            Json::Object(object) => self.described(object),
            other => Err(format!("a field class is {}", other.kind())),
        };
        self.depth -= 1;
        class
    }

    fn alias(&mut self, name: &str) -> Result<FieldClass, String> {
        let place = self.aliases.places.get(name);
        let Some(&place) = place.filter(|place| **place < self.visible) else {
            return Err(format!(
                "the field class alias `{name}` is not declared before"
            ));
        };
        let class = Rc::clone(&self.aliases.classes[place]);
        let visible = std::mem::replace(&mut self.visible, place);
        let class = self.class(&class);
        self.visible = visible;
        class
    }

    fn described(&mut self, object: &Object) -> Result<FieldClass, String> {
        self.note_others(object);
        let kind = object.text("type")?.ok_or("a field class without `type`")?;
        match kind {
            "fixed-length-bit-array" | "fixed-length-bit-map" => {
                self.fixed_integer(object, IntegerKind::BitMap)
            }
            "fixed-length-boolean" => self.fixed_integer(object, IntegerKind::Boolean),
            "fixed-length-unsigned-integer" | "fixed-length-unsigned-enumeration" => {
                self.fixed_integer(object, IntegerKind::Unsigned)
            }
            "fixed-length-signed-integer" | "fixed-length-signed-enumeration" => {
                self.fixed_integer(object, IntegerKind::Signed)
            }
            "variable-length-unsigned-integer" | "variable-length-unsigned-enumeration" => {
                self.variable_integer(object, IntegerKind::Unsigned)
            }
            "variable-length-signed-integer" | "variable-length-signed-enumeration" => {
                self.variable_integer(object, IntegerKind::Signed)
            }
            "fixed-length-floating-point-number" => fixed_float(object),
            "null-terminated-string" => Ok(FieldClass::Text {
                encoding: encoding(object)?,
            }),
            "static-length-string" => Ok(FieldClass::StaticText {
                bytes: object.unsigned("length")?.ok_or("missing `length`")?,
                encoding: encoding(object)?,
            }),
            "dynamic-length-string" => Ok(FieldClass::DynamicText {
                length: self.length(object)?,
                encoding: encoding(object)?,
            }),
            "static-length-blob" => Ok(FieldClass::StaticBlob {
                bytes: object.unsigned("length")?.ok_or("missing `length`")?,
                roles: self.roles(object)?,
            }),
            "dynamic-length-blob" => Ok(FieldClass::DynamicBlob {
                length: self.length(object)?,
            }),
            "structure" => self.structure(object),
            "static-length-array" => self.static_array(object),
            "dynamic-length-array" => self.dynamic_array(object),
            "optional" => self.optional(object),
            "variant" => self.variant(object),
            other => Err(format!("unknown field class `{other}`")),
        }
    }

    fn fixed_integer(&mut self, object: &Object, kind: IntegerKind) -> Result<FieldClass, String> {
        let byte_order = byte_order(object)?;
        let class = IntegerClass {
            bits: bits(object)?,
            byte_order,
            bit_order: bit_order(object, byte_order)?,
            alignment: alignment(object, "alignment")?,
            ..self.integer(object, kind)?
        };
        Ok(FieldClass::Integer(class))
    }

    fn variable_integer(
        &mut self,
        object: &Object,
        kind: IntegerKind,
    ) -> Result<FieldClass, String> {
        Ok(FieldClass::VariableInteger(self.integer(object, kind)?))
    }

    /// Common properties of fixed-length and variable-length integers.
    fn integer(&mut self, object: &Object, kind: IntegerKind) -> Result<IntegerClass, String> {
        let roles = self.roles(object)?;
        let is_time = |role: &Role| matches!(role, Role::Timestamp | Role::PacketEndTimestamp);
        let clock = self.clock.filter(|_| roles.iter().any(is_time));
        let labelled = if kind == IntegerKind::BitMap {
            "flags"
        } else {
            "mappings"
        };
        let mappings = self.mappings(object.get(labelled))?;
        Ok(IntegerClass {
            bits: 0,
            kind,
            byte_order: ByteOrder::Little,
            bit_order: BitOrder::LeastFirst,
            alignment: 8,
            base: match object.integer("preferred-display-base")? {
                None => 10,
                Some(base @ (2 | 8 | 10 | 16)) => base as u32,
                Some(base) => return Err(format!("invalid `preferred-display-base` {base}")),
            },
            is_text: false,
            clock,
            roles,
            mappings,
        })
    }

    fn mappings(&mut self, json: Option<&Json>) -> Result<Vec<Mapping>, String> {
        let Some(json) = json else {
            return Ok(Vec::new());
        };
        let Json::Object(labels) = json else {
            return Err(format!("labels are {}, not an object", json.kind()));
        };
        let spent = self.budget.spend(labels.0.len(), self.offset);
        spent.map_err(|fault| fault.what)?;
        let mappings = labels.0.iter().map(|(label, ranges)| {
            Ok(Mapping {
                label: label.clone(),
                ranges: self.ranges(ranges)?,
            })
        });
        mappings.collect()
    }

    fn ranges(&self, json: &Json) -> Result<Vec<Range>, String> {
        let Json::Array(pairs) = json else {
            return Err(format!("integer ranges are {}", json.kind()));
        };
        let spent = self.budget.spend(pairs.len(), self.offset);
        spent.map_err(|fault| fault.what)?;
        pairs
            .iter()
            .map(|pair| match pair {
                Json::Array(ends) => match ends[..] {
                    [Json::Integer(first), Json::Integer(last)] if first <= last => {
                        Ok(Range { first, last })
                    }
                    _ => Err("an integer range must be two ascending integers".to_owned()),
                },
                other => Err(format!("an integer range is {}", other.kind())),
            })
            .collect()
    }

    fn roles(&mut self, object: &Object) -> Result<Vec<Role>, String> {
        let mut roles = Vec::new();
        for name in object.array("roles")?.unwrap_or_default() {
            let Json::Text(name) = name else {
                return Err(format!("a role is {}", name.kind()));
            };
            match role(name) {
                Some(role) => roles.push(role),
                None => self.note(format!("role `{name}`")),
            }
        }
        Ok(roles)
    }

    fn structure(&mut self, object: &Object) -> Result<FieldClass, String> {
        let members = object.array("member-classes")?.unwrap_or_default();
        if members.len() > STRUCT_MEMBERS_MAX {
            return Err(format!(
                "a structure with more than {STRUCT_MEMBERS_MAX} members"
            ));
        }
        let mut alignment = alignment(object, "minimum-alignment")?;
        self.lookup.open_struct(members.len());
        for member in members {
            let Json::Object(member) = member else {
                return Err(format!("a structure member is {}", member.kind()));
            };
            let name = member.text("name")?.ok_or("a member without `name`")?;
            let class = member
                .get("field-class")
                .ok_or_else(|| format!("the member `{name}` has no `field-class`"))?;
            self.lookup.begin_member(name);
            let class = self.class(class).map_err(|what| in_member(name, &what))?;
            alignment = alignment.max(class.alignment());
            self.lookup.end_member(class);
        }
        let members = self.lookup.close_struct();
        Ok(FieldClass::Struct(StructClass { members, alignment }))
    }

    fn static_array(&mut self, object: &Object) -> Result<FieldClass, String> {
        let length = object.unsigned("length")?.ok_or("missing `length`")?;
        let (element, alignment) = self.element(object)?;
        Ok(FieldClass::Array {
            element,
            length,
            alignment,
        })
    }

    fn dynamic_array(&mut self, object: &Object) -> Result<FieldClass, String> {
        let length = self.length(object)?;
        let (element, alignment) = self.element(object)?;
        Ok(FieldClass::Sequence {
            element,
            length,
            alignment,
        })
    }

    fn element(&mut self, object: &Object) -> Result<(Box<FieldClass>, u32), String> {
        let element = object.get("element-field-class");
        let element = self.class(element.ok_or("no `element-field-class`")?)?;
        let alignment = alignment(object, "minimum-alignment")?.max(element.alignment());
        Ok((Box::new(element), alignment))
    }

    fn optional(&mut self, object: &Object) -> Result<FieldClass, String> {
        let (selector, target) = self.locate(object, "selector-field-location")?;
        if !is_integer(target, |_| true) {
            return Err("the selector of an optional field is not an integer".to_owned());
        }
        let ranges = match object.get("selector-field-ranges") {
            Some(ranges) => self.ranges(ranges)?,
            // A boolean selects if it is true.
            None if is_integer(target, |kind| kind == IntegerKind::Boolean) => vec![Range {
                first: 1,
                last: u64::MAX.into(),
            }],
            None => return Err("missing `selector-field-ranges`".to_owned()),
        };
        let class = object.get("field-class").ok_or("missing `field-class`")?;
        Ok(FieldClass::Optional {
            selector,
            ranges,
            class: Box::new(self.class(class)?),
        })
    }

    fn variant(&mut self, object: &Object) -> Result<FieldClass, String> {
        let (selector, target) = self.locate(object, "selector-field-location")?;
        if !is_integer(target, |_| true) {
            return Err("the selector of a variant is not an integer".to_owned());
        }
        let mut options = Vec::new();
        for option in object.array("options")?.unwrap_or_default() {
            let Json::Object(option) = option else {
                return Err(format!("an option is {}", option.kind()));
            };
            let ranges = option.get("selector-field-ranges");
            let class = option.get("field-class");
            options.push(VariantOption {
                name: option.text("name")?.map(str::to_owned),
                ranges: self.ranges(ranges.ok_or("an option without `selector-field-ranges`")?)?,
                class: self.class(class.ok_or("an option without `field-class`")?)?,
            });
        }
        Ok(FieldClass::Variant { selector, options })
    }

    fn length(&self, object: &Object) -> Result<FieldLocation, String> {
        let (location, target) = self.locate(object, "length-field-location")?;
        if !is_integer(target, |kind| kind == IntegerKind::Unsigned) {
            let path = location.path.join(".");
            return Err(format!("the length `{path}` is not an unsigned integer"));
        }
        Ok(location)
    }

    fn locate(
        &self,
        object: &Object,
        property: &str,
    ) -> Result<(FieldLocation, &FieldClass), String> {
        let json = object
            .get(property)
            .ok_or_else(|| format!("missing `{property}`"))?;
        let (origin, path) = match json {
            Json::Object(location) => {
                let path = location.array("path")?;
                (location.text("origin")?, path.ok_or("missing `path`")?)
            }
            // Before the final format, the origin was the first element.
            Json::Array(path) => match path.split_first() {
                Some((Json::Text(origin), path)) => (Some(origin.as_str()), path),
                _ => return Err(format!("`{property}` has no origin")),
            },
            other => return Err(format!("`{property}` is {}", other.kind())),
        };
        let (up, names) = steps(path)?;
        let found = match origin {
            None => self.lookup.find_from_parent(up, &names),
            Some(_) if up > 0 => return Err(format!("`{property}` leaves its origin")),
            Some(origin) => {
                let scope = scope_of_origin(origin);
                let scope = scope.ok_or_else(|| format!("unknown origin `{origin}`"))?;
                self.lookup.find_in_scope(scope, &names)
            }
        };
        found.ok_or_else(|| format!("no field `{}` before this one", names.join(".")))
    }

    fn note_others(&mut self, object: &Object) {
        for (name, _) in &object.0 {
            if !CLASS_PROPERTIES.contains(&name.as_str()) {
                self.note(format!("field class property `{name}`"));
            }
        }
    }

    fn note(&mut self, what: String) {
        self.notes
            .add(&METADATA_UNKNOWN, Fault::new(self.offset, what));
    }
}

const CLASS_PROPERTIES: [&str; 22] = [
    "type",
    "attributes",
    "user-attributes",
    "extensions",
    "length",
    "byte-order",
    "bit-order",
    "alignment",
    "preferred-display-base",
    "mappings",
    "flags",
    "roles",
    "encoding",
    "media-type",
    "length-field-location",
    "member-classes",
    "minimum-alignment",
    "element-field-class",
    "field-class",
    "selector-field-location",
    "selector-field-ranges",
    "options",
];

fn in_member(name: &str, what: &str) -> String {
    format!("`{name}`: {what}")
}
