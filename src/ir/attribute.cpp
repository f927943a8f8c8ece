// attribute.cpp - the special members of arguments, compiled once.
#include "ir/attribute.h"

namespace tonnx {

AttrValue::AttrValue() noexcept = default;
AttrValue::AttrValue(const AttrValue& other) = default;
AttrValue::AttrValue(AttrValue&& other) noexcept = default;
AttrValue& AttrValue::operator=(const AttrValue& other) = default;
AttrValue& AttrValue::operator=(AttrValue&& other) noexcept = default;
AttrValue::~AttrValue() = default;

Attribute::Attribute() = default;
Attribute::Attribute(std::string_view name, AttrValue value, AttrType type, std::string_view reference,
                     std::string_view doc)
    : name(name), value(std::move(value)), type(type), reference(reference), doc(doc) {}
Attribute::Attribute(const Attribute& other) = default;
Attribute::Attribute(Attribute&& other) noexcept = default;
Attribute& Attribute::operator=(const Attribute& other) = default;
Attribute& Attribute::operator=(Attribute&& other) noexcept = default;
Attribute::~Attribute() = default;

}  // namespace tonnx

template class std::vector<tonnx::AttrValue>;
template class std::vector<tonnx::Attribute>;
