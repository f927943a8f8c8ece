// pickle_test.cpp - pickles that Python wrote, in each protocol, and hostile ones.
#include "base/pickle.h"

#include "checks.h"

namespace tonnx {
namespace {

using namespace std::string_literals;
using Kind = PickleValue::Kind;

/// The value in a notation close to Python's.
std::string shown_value(const PickleValue& value) {
  const auto list = [](const std::vector<PickleValue::Item>& items, const char* open, const char* close) {
    std::string text = open;
    for (const PickleValue* item : items) text += (text.size() > 1 ? ", " : "") + shown_value(*item);
    return text + close;
  };
  switch (value.kind) {
    case Kind::None: return "None";
    case Kind::Bool: return value.integer != 0 ? "True" : "False";
    case Kind::Int: return std::to_string(value.integer);
    case Kind::BigInt: return "big" + std::to_string(value.text.size());
    case Kind::Float: return fmt::format("{}", value.real);
    case Kind::String: return "'" + std::string(value.text) + "'";
    case Kind::Bytes: return "b'" + std::string(value.text) + "'";
    case Kind::Tuple: return list(value.items, "(", ")");
    case Kind::List: return list(value.items, "[", "]");
    case Kind::Set: return list(value.items, "{", "}");
    case Kind::Dict: return list(value.entries, "<", ">");
    case Kind::Global: return std::string(value.module) + "." + std::string(value.text);
    case Kind::Persistent: return "persistent " + shown_value(*value.callee);
    case Kind::Object: break;
  }
  std::string text = shown_value(*value.callee) + shown_value(*value.arguments);
  if (value.keywords != nullptr) text += "**" + shown_value(*value.keywords);
  if (!value.items.empty()) text += list(value.items, "[", "]");
  if (!value.entries.empty()) text += list(value.entries, "<", ">");
  if (value.state != nullptr) text += " state " + shown_value(*value.state);
  return text;
}

std::string read(const std::string& bytes) { return shown_value(Pickle(Bytes::own(bytes), "x").root()); }
Error refused(const std::string& bytes) {
  return error_of([&] { Pickle(Bytes::own(bytes), "x"); });
}

// [None, True, False, 0, 255, 65535, -1, 2**31-1, -2**31, 2**40, -2**62, 2**63-1, -2**63, 2**80, 1.5, 'a', 'é', (),
// (1,),
//  (1, 2), (1, 2, 3), (1, 2, 3, 4), [1], {'k': 'v', 2: [3]}, OrderedDict(a=1), 2**63, -129]
const std::string kProtocol2 =
    "\x80\x02]q\x00("
    "N\x88\x89K\x00K\xffM\xff\xffJ\xff\xff\xff\xffJ\xff\xff\xff\x7fJ\x00\x00\x00\x80\x8a\x06\x00\x00\x00\x00\x00\x01"
    "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\xc0\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x8a\x08\x00\x00\x00\x00\x00\x00"
    "\x00\x80\x8a\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01G\x3f\xf8\x00\x00\x00\x00\x00\x00X\x01\x00\x00\x00"
    "aq\x01X\x02\x00\x00\x00\xc3\xa9q\x02)K\x01\x85q\x03K\x01K\x02\x86q\x04K\x01K\x02K\x03\x87q\x05("
    "K\x01K\x02K\x03K\x04tq\x06]q\x07K\x01"
    "a}q\x08(X\x01\x00\x00\x00kq\x09X\x01\x00\x00\x00vq\x0aK\x02]q\x0bK\x03"
    "auccollections\x0aOrderedDict\x0aq\x0c)"
    "Rq\x0dh\x01K\x01s\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00J\x7f\xff\xff\xff"
    "e."s;
const std::string kProtocol4 =
    "\x80\x04\x95\xcf\x00\x00\x00\x00\x00\x00\x00]\x94("
    "N\x88\x89K\x00K\xffM\xff\xffJ\xff\xff\xff\xffJ\xff\xff\xff\x7fJ\x00\x00\x00\x80\x8a\x06\x00\x00\x00\x00\x00\x01"
    "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\xc0\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x8a\x08\x00\x00\x00\x00\x00\x00"
    "\x00\x80\x8a\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01G\x3f\xf8\x00\x00\x00\x00\x00\x00\x8c\x01"
    "a\x94\x8c\x02\xc3\xa9\x94)K\x01\x85\x94K\x01K\x02\x86\x94K\x01K\x02K\x03\x87\x94(K\x01K\x02K\x03K\x04t\x94]"
    "\x94K\x01"
    "a}\x94(\x8c\x01k\x94\x8c\x01v\x94K\x02]\x94K\x03"
    "au\x8c\x0b"
    "collections\x94\x8c\x0bOrderedDict\x94\x93\x94)"
    "R\x94h\x01K\x01s\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00J\x7f\xff\xff\xff"
    "e."s;
const char* const kRead =
    "[None, True, False, 0, 255, 65535, -1, 2147483647, -2147483648, 1099511627776, -4611686018427387904, "
    "9223372036854775807, -9223372036854775808, big11, 1.5, 'a', 'é', (), (1), (1, 2), (1, 2, 3), (1, 2, 3, 4), [1], "
    "<'k', 'v', 2, [3]>, collections.OrderedDict()<'a', 1>, big9, -129]";

TEST(Pickle, ReadsWhatPythonWrites) {
  EXPECT_EQ(read(kProtocol2), kRead);
  EXPECT_EQ(read(kProtocol4), kRead);
  // [{7}, frozenset([8]), b'xy', bytearray(b'z')]
  EXPECT_EQ(read("\x80\x05\x95 \x00\x00\x00\x00\x00\x00\x00]\x94(\x8f\x94(K\x07\x90(K\x08\x91\x94"
                 "C\x02xy\x94\x96\x01\x00\x00\x00\x00\x00\x00\x00z\x94"
                 "e."s),
            "[{7}, {8}, b'xy', b'z']");
  // complex(1, 2)
  EXPECT_EQ(read("\x80\x02"
                 "c__builtin__\x0a"
                 "complex\x0aq\x00G\x3f\xf0\x00\x00\x00\x00\x00\x00G@\x00\x00\x00\x00\x00\x00\x00\x86q\x01Rq\x02."s),
            "__builtin__.complex(1, 2)");
  // an object with __getnewargs_ex__ and a dict
  EXPECT_EQ(
      read(
          "\x80\x04\x95&\x00\x00\x00\x00\x00\x00\x00\x8c\x03mod\x94\x8c\x01N\x94\x93\x94K\x01\x85\x94}\x94\x8c\x01k\x94K\x02s\x92\x94}\x94\x8c\x01x\x94K\x03sb."s),
      "mod.N(1)**<'k', 2> state <'x', 3>");
}

TEST(Pickle, ReadsWhatPyTorchWrites) {
  // what torch.jit.save makes of an object, and of a tensor
  EXPECT_EQ(read("\x80\x02"
                 "c__torch__\nM\n)\x81}(X\x08\x00\x00\x00trainingq\x00\x88X\x01\x00\x00\x00nq\x01K\x05ub."s),
            "__torch__.M() state <'training', True, 'n', 5>");
  EXPECT_EQ(read("\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00"
                 "0X\x03\x00\x00\x00"
                 "cpuK\x06tQ."s),
            "persistent ('storage', torch.FloatStorage, '0', 'cpu', 6)");
  EXPECT_EQ(read("\x80\x02(l(d(K\x01K\x02K\x03K\x04"
                 "d(cm\nN\nK\x01ot."s.insert(2, "(")),
            "([], <>, <1, 2, 3, 4>, m.N(1))");
  EXPECT_EQ(read("\x80\x02K\x01K\x02"
                 "0(K\x03"
                 "1(0"
                 "2\x86."s),
            "(1, 1)");
}

TEST(Pickle, MembersOfEnumsAreCallsOfOneValue) {
  EXPECT_EQ(read("\x80\x02"
                 "c__torch__\nColour\nK\x07R."s),
            "__torch__.Colour(7)");
}

TEST(Pickle, NothingIsExecuted) {
  EXPECT_EQ(read("\x80\x02"
                 "cos\nsystem\nX\x02\x00\x00\x00ls\x85R."s),
            "os.system('ls')");
}

TEST(Pickle, SeveralMayFollowOneAnother) {
  const Pickle first(Bytes::own("\x80\x02K\x01.\x80\x02K\x02."s), "x");
  EXPECT_EQ(first.size(), 5U);
  EXPECT_EQ(first.root().integer, 1);
}

TEST(Pickle, EveryTruncationIsRefused) {
  for (const std::string& whole : {kProtocol2, kProtocol4}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_EQ(refused(whole.substr(0, size)).kind(), ErrorKind::BadFile) << size;
    }
  }
}

TEST(Pickle, RefusesWhatMakesNoSense) {
  const std::pair<std::string, const char*> kBad[] = {
      {".", "stack runs empty"},
      {"K\x01K\x02."s, "left over"},
      {"(K\x01."s, "left over"},
      {"t.", "lacks a mark"},
      {"K\x01(0a."s, "stack runs empty"},
      {"K\x01(\x85."s, "stack runs empty"},
      {"K\x01K\x02"
       "a."s,
       "no list"},
      {"]K\x01K\x02s."s, "no dict"},
      {"}(K\x01u."s, "without a value"},
      {"h\x05."s, "value 5 of its memo"},
      {"j\xff\xff\xff\xff."s, "memo"},
      {"q\x01."s, "stack runs empty"},
      {"K\x01K\x02\x93."s, "a global has no name"},
      {"cm\nN\nK\x01\x81."s, "no tuple of arguments"},
      {"K\x01}b."s, "no object"},
      {"(o.", "no class"},
      {"\x8b\xff\xff\xff\xff."s, "has -1 bytes"},
      {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff."s, "ends too early"},
      {"X\xff\xff\xff\xff."s, "ends too early"},
      {"cmodule", "ends too early"},
      {"\xff", "0xff is no opcode"},
      {"]q\x00h\x00"
       "a."s,
       "contains itself"},
      {"]q\x00(h\x00te."s, "lacks a mark"},
      {"}q\x00K\x01h\x00\x85s."s, "contains itself"},
      {"cm\nN\n)\x81q\x00h\x00"
       "b."s,
       "contains itself"},
  };
  for (const auto& [bytes, part] : kBad) {
    const Error error = refused(bytes);
    EXPECT_EQ(error.kind(), ErrorKind::BadFile) << error.what();
    EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what() << " for " << part;
  }
  EXPECT_EQ(refused("\x80\x06N."s).kind(), ErrorKind::Unsupported);
  EXPECT_EQ(refused("I1\n.").kind(), ErrorKind::Unsupported);
  EXPECT_EQ(refused("\x82\x01."s).kind(), ErrorKind::Unsupported);
  EXPECT_EQ(refused("\x97.").kind(), ErrorKind::Unsupported);
}

TEST(Pickle, DepthAndSizeAreLimited) {
  const auto nested = [](size_t depth) { return ")" + std::string(depth, '\x85') + "."; };
  EXPECT_NO_THROW(read(nested(Pickle::kMaxDepth - 1)));
  EXPECT_ERROR(BadFile, "nests deeper", read(nested(Pickle::kMaxDepth)));
  EXPECT_ERROR(BadFile, "nests deeper", read(nested(1'000'000)));
  // deep only through what the memo holds: each list is small when it is made, and is put into the one before it
  std::string chain = "]q\x00"s;
  for (int i = 1; i < 600; ++i) {
    chain += "]r"s + std::string{static_cast<char>(i & 0xFF), static_cast<char>(i >> 8), 0, 0} + "0";
    const int before = i - 1;
    chain += "j"s + std::string{static_cast<char>(before & 0xFF), static_cast<char>(before >> 8), 0, 0} + "j" +
             std::string{static_cast<char>(i & 0xFF), static_cast<char>(i >> 8), 0, 0} + "a0";
  }
  EXPECT_ERROR(BadFile, "nests deeper", read(chain + "."));
  EXPECT_ERROR(BadFile, "more than 4194304 values", read(std::string(5'000'000, ')') + "."));
  EXPECT_ERROR(BadFile, "stack runs empty", read(std::string(5'000'000, '(') + "."));
  // each holds the one before it twice: small in memory, endless to a blind walk
  std::string doubled = ")";
  for (int i = 0; i < 200; ++i) doubled += "2\x86";
  EXPECT_NO_THROW(Pickle(Bytes::own(doubled + "."), "x"));
}

}  // namespace
}  // namespace tonnx
