// ops.cpp - lists the families of operators and finds an operator by its name.
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "ir/graph.h"
#include "ops/frame/op_def.h"

namespace tonnx {

extern const OpFamily kActivationOps;
extern const OpFamily kDropoutOps;
extern const OpFamily kUnaryOps;
extern const OpFamily kBinaryOps;
extern const OpFamily kCompareOps;
extern const OpFamily kCastOps;
extern const OpFamily kShapeOps;
extern const OpFamily kAxesOps;
extern const OpFamily kJoinOps;
extern const OpFamily kSliceOps;
extern const OpFamily kCompressOps;
extern const OpFamily kPadOps;
extern const OpFamily kCreateOps;
extern const OpFamily kDiagonalOps;
extern const OpFamily kIndexOps;
extern const OpFamily kScatterOps;
extern const OpFamily kReduceOps;
extern const OpFamily kArgReduceOps;
extern const OpFamily kScanOps;
extern const OpFamily kSortOps;
extern const OpFamily kResizeOps;
extern const OpFamily kMatMulOps;
extern const OpFamily kSoftmaxOps;
extern const OpFamily kConvOps;
extern const OpFamily kPoolOps;
extern const OpFamily kNormBatchOps;
extern const OpFamily kNormLayerOps;
extern const OpFamily kSpaceOps;
extern const OpFamily kControlFlowOps;
extern const OpFamily kSequenceOps;
extern const OpFamily kSizeOps;
extern const OpFamily kQuantizeOps;
extern const OpFamily kQLinearOps;
extern const OpFamily kRecurrentOps;
extern const OpFamily kMsQuantOps;
extern const OpFamily kMsQuantMatMulOps;
extern const OpFamily kLossOps;
extern const OpFamily kAttentionOps;
extern const OpFamily kAttentionFlexOps;
extern const OpFamily kLinearAttentionOps;
extern const OpFamily kRotaryOps;
extern const OpFamily kTrainingOps;
extern const OpFamily kMsActivationOps;
extern const OpFamily kMsMatMulOps;
extern const OpFamily kMsNormOps;
extern const OpFamily kMsAttentionOps;
extern const OpFamily kMsTensorOps;
extern const OpFamily kMsMoeOps;
extern const OpFamily kMsCropOps;
extern const OpFamily kMsAbsentOps;
extern const OpFamily kGridOps;
extern const OpFamily kFoldOps;
extern const OpFamily kRoiOps;
extern const OpFamily kNmsOps;
extern const OpFamily kUniqueOps;
extern const OpFamily kSignalOps;
extern const OpFamily kRandomOps;
extern const OpFamily kRankChoiceOps;
extern const OpFamily kTfIdfOps;
extern const OpFamily kTextOps;
extern const OpFamily kMlOps;
extern const OpFamily kMlFeatureOps;
extern const OpFamily kMlLinearOps;
extern const OpFamily kMlTreeOps;
extern const OpFamily kAtenConvOps;
extern const OpFamily kAtenMatMulOps;
extern const OpFamily kAtenPoolOps;
extern const OpFamily kAtenNormOps;
extern const OpFamily kAtenUnaryOps;
extern const OpFamily kAtenBinaryOps;
extern const OpFamily kAtenCompareOps;
extern const OpFamily kAtenComplexOps;
extern const OpFamily kAtenCastOps;
extern const OpFamily kAtenActivationOps;
extern const OpFamily kAtenCreateOps;
extern const OpFamily kAtenReduceOps;
extern const OpFamily kAtenShapeOps;
extern const OpFamily kAtenSliceOps;
extern const OpFamily kAtenJoinOps;
extern const OpFamily kAtenPadOps;
extern const OpFamily kAtenIndexOps;
extern const OpFamily kAtenIndexPutOps;
extern const OpFamily kAtenDiagonalOps;
extern const OpFamily kAtenScatterOps;
extern const OpFamily kAtenSortOps;
extern const OpFamily kAtenSearchOps;
extern const OpFamily kAtenHistogramOps;
extern const OpFamily kAtenSegmentOps;
extern const OpFamily kAtenSizeOps;
extern const OpFamily kAtenControlFlowOps;
extern const OpFamily kAtenLoopOps;
extern const OpFamily kAtenBesselOps;
extern const OpFamily kAtenGammaOps;
extern const OpFamily kAtenDistanceOps;
extern const OpFamily kAtenNllOps;
extern const OpFamily kAtenLossOps;
extern const OpFamily kAtenRandomOps;
extern const OpFamily kAtenScanOps;
extern const OpFamily kAtenFractionalPoolOps;
extern const OpFamily kAtenEinsumOps;
extern const OpFamily kAtenLinalgOps;
extern const OpFamily kAtenCallOps;
extern const OpFamily kAtenFactorOps;
extern const OpFamily kAtenFftOps;
extern const OpFamily kAtenQuantizeOps;
extern const OpFamily kAtenStftOps;
extern const OpFamily kAtenVisionOps;
extern const OpFamily kAtenOverlapOps;
extern const OpFamily kAtenPackedOps;
extern const OpFamily kAtenRecurrentOps;
extern const OpFamily kAtenGroupedOps;
extern const OpFamily kAtenGridOps;
extern const OpFamily kAtenResizeOps;

namespace {

// one a line: two branches that each add a family do not meet
// clang-format off
constexpr const OpFamily* kFamilies[] = {
    &kActivationOps,
    &kDropoutOps,
    &kUnaryOps,
    &kBinaryOps,
    &kCompareOps,
    &kCastOps,
    &kShapeOps,
    &kAxesOps,
    &kJoinOps,
    &kSliceOps,
    &kCompressOps,
    &kPadOps,
    &kCreateOps,
    &kDiagonalOps,
    &kIndexOps,
    &kScatterOps,
    &kReduceOps,
    &kArgReduceOps,
    &kScanOps,
    &kSortOps,
    &kResizeOps,
    &kMatMulOps,
    &kSoftmaxOps,
    &kConvOps,
    &kPoolOps,
    &kNormBatchOps,
    &kNormLayerOps,
    &kSpaceOps,
    &kControlFlowOps,
    &kSequenceOps,
    &kSizeOps,
    &kQuantizeOps,
    &kQLinearOps,
    &kRecurrentOps,
    &kMsQuantOps,
    &kMsQuantMatMulOps,
    &kLossOps,
    &kAttentionOps,
    &kAttentionFlexOps,
    &kLinearAttentionOps,
    &kRotaryOps,
    &kTrainingOps,
    &kMsActivationOps,
    &kMsMatMulOps,
    &kMsNormOps,
    &kMsAttentionOps,
    &kMsTensorOps,
    &kMsMoeOps,
    &kMsCropOps,
    &kMsAbsentOps,
    &kGridOps,
    &kFoldOps,
    &kRoiOps,
    &kNmsOps,
    &kUniqueOps,
    &kSignalOps,
    &kRandomOps,
    &kRankChoiceOps,
    &kTfIdfOps,
    &kTextOps,
    &kMlOps,
    &kMlFeatureOps,
    &kMlLinearOps,
    &kMlTreeOps,
    &kAtenConvOps,
    &kAtenMatMulOps,
    &kAtenPoolOps,
    &kAtenNormOps,
    &kAtenUnaryOps,
    &kAtenBinaryOps,
    &kAtenCompareOps,
    &kAtenComplexOps,
    &kAtenCastOps,
    &kAtenActivationOps,
    &kAtenCreateOps,
    &kAtenReduceOps,
    &kAtenShapeOps,
    &kAtenSliceOps,
    &kAtenJoinOps,
    &kAtenPadOps,
    &kAtenIndexOps,
    &kAtenIndexPutOps,
    &kAtenDiagonalOps,
    &kAtenScatterOps,
    &kAtenSortOps,
    &kAtenSearchOps,
    &kAtenHistogramOps,
    &kAtenSegmentOps,
    &kAtenSizeOps,
    &kAtenControlFlowOps,
    &kAtenLoopOps,
    &kAtenBesselOps,
    &kAtenGammaOps,
    &kAtenDistanceOps,
    &kAtenNllOps,
    &kAtenLossOps,
    &kAtenRandomOps,
    &kAtenScanOps,
    &kAtenFractionalPoolOps,
    &kAtenEinsumOps,
    &kAtenLinalgOps,
    &kAtenCallOps,
    &kAtenFactorOps,
    &kAtenFftOps,
    &kAtenQuantizeOps,
    &kAtenStftOps,
    &kAtenVisionOps,
    &kAtenOverlapOps,
    &kAtenPackedOps,
    &kAtenRecurrentOps,
    &kAtenGroupedOps,
    &kAtenGridOps,
    &kAtenResizeOps,
};
// clang-format on

/// The rows of a vocabulary by their names. A signature is parsed when its row is first looked for: a model has few
/// operators, and there are many. Several threads look at once.
template <class Op, class Entry>
class Table {
 public:
  Table(std::span<const Op> OpFamily::*rows, ParsedSignature (*parse)(std::string_view)) : parse_(parse) {
    size_t count = 0;
    for (const OpFamily* family : kFamilies) count += (family->*rows).size();
    slots_.reserve(count);
    for (const OpFamily* family : kFamilies) {
      for (const Op& op : family->*rows) {
        const bool fresh = slots_.try_emplace(op.sig.name(), &op, family).second;
        ensure(fresh, "an operator is in two tables");
      }
    }
  }

  /// Null where there is none of that name.
  const Entry* find(std::string_view name) {
    const auto at = slots_.find(name);
    if (at == slots_.end()) return nullptr;
    Slot& slot = at->second;
    if (const Entry* entry = slot.entry.load(std::memory_order_acquire)) return entry;
    const std::lock_guard lock(mutex_);
    if (const Entry* entry = slot.entry.load(std::memory_order_relaxed)) return entry;
    const Entry& made = entries_.emplace_back(Entry{slot.op, slot.family, parse_(slot.op->sig.text())});
    slot.entry.store(&made, std::memory_order_release);
    return &made;
  }

 private:
  struct Slot {
    Slot(const Op* row, const OpFamily* of) : op(row), family(of) {}
    const Op* op;
    const OpFamily* family;
    std::atomic<const Entry*> entry = nullptr;
  };
  ParsedSignature (*parse_)(std::string_view);
  std::unordered_map<std::string_view, Slot> slots_;
  std::deque<Entry> entries_;  // whose places stay
  std::mutex mutex_;
};

/// The three names of an aten operator; each text is one object, whose address tells it apart.
using SymbolKey = std::array<const void*, 3>;
struct SymbolHash {
  size_t operator()(const SymbolKey& key) const {
    size_t hash = 0;
    for (const void* part : key) hash = hash * 0x9E3779B97F4A7C15 + std::hash<const void*>()(part);
    return hash ^ (hash >> 29);
  }
};
using SymbolTable = std::unordered_map<SymbolKey, const AtenOpEntry*, SymbolHash>;

SymbolKey key_of(Symbol domain, Symbol op, Symbol overload) { return {&domain.str(), &op.str(), &overload.str()}; }

}  // namespace

std::span<const OpFamily* const> op_families() { return kFamilies; }

const OnnxOpEntry* find_onnx_op(std::string_view domain, std::string_view name) {
  static auto& table = *new Table<OnnxOp, OnnxOpEntry>(&OpFamily::onnx, parse_onnx_signature);  // for the whole run
  return domain.empty() ? table.find(name) : table.find(fmt::format("{}::{}", domain, name));
}

std::span<const int> standard_versions(std::string_view name) {
  static const auto& versions = *new auto([] {
    std::unordered_map<std::string_view, std::vector<int>> all;
    for (const OpFamily* family : kFamilies) {
      for (const OnnxOp& op : family->onnx) {
        if (op.has(kOutsideStandard) || op.sig.name().find("::") != std::string_view::npos) continue;
        std::vector<int>& found = all[op.sig.name()];
        found.push_back(op.since);
        for (const OpsetStep& step : op.history) found.push_back(step.to);
      }
    }
    return all;
  }());
  const auto at = versions.find(name);
  return at == versions.end() ? std::span<const int>() : std::span<const int>(at->second);
}

int schema_version(std::string_view name, int64_t opset) {
  int found = 0;
  for (const int version : standard_versions(name)) {
    if (version <= opset) found = version;
  }
  return found;
}

bool has_trait(const Node& node, OnnxTrait trait) {
  const OnnxOpEntry* entry = node.domain.empty() ? find_onnx_op("", node.op.view()) : nullptr;
  return entry != nullptr && entry->op->has(trait);
}

const AtenOpEntry* find_aten_op(std::string_view name) {
  static auto& table = *new Table<AtenOp, AtenOpEntry>(&OpFamily::aten, parse_aten_signature);  // for the whole run
  return table.find(name);
}

const AtenOpEntry* find_aten_op(const Node& node) {
  thread_local SymbolTable found;  // of rows that there are: whatever a file names besides, it does not grow
  const SymbolKey key = key_of(node.domain, node.op, node.overload);
  if (const auto at = found.find(key); at != found.end()) return at->second;
  const AtenOpEntry* entry = find_aten_op(full_name(node));
  if (entry == nullptr || entry->signature.name != node.op.view() || entry->signature.overload != node.overload.view())
    return nullptr;  // the text may be the same where the parts of it are not
  return found.emplace(key, entry).first->second;
}

bool sums_products(const Node& node) {
  if (const AtenOpEntry* aten = find_aten_op(node)) return aten->op->low_precision;
  const OnnxOpEntry* onnx = find_onnx_op(node.domain.view(), node.op.view());
  return onnx != nullptr && onnx->op->has(kSumsProducts);
}

const AtenOpEntry& get_aten_op(const Node& node) {
  const AtenOpEntry* entry = find_aten_op(node);
  if (entry == nullptr) fail_unsupported("the operator {} is not supported", full_name(node));
  return *entry;
}

std::string full_name(const Node& node) {
  return fmt::format("{}::{}{}{}", node.domain.view(), node.op.view(), node.overload.empty() ? "" : ".",
                     node.overload.view());
}

}  // namespace tonnx
