// weights_back.h - takes new values of what constants became back to the constants.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/origins.h"

namespace tonnx {

/// Runs of bytes in memory, each of which is a constant of the file or was computed from some.
class WeightsBack {
 public:
  /// `constants` are those of the file, in the memory that the notes know them by.
  WeightsBack(const Origins& origins, const std::vector<TensorPtr>& constants);

  /// What `before` is, or has become, is to be `now`, which has as many elements of the same type.
  void want(std::string name, TensorPtr before, TensorPtr now);

  /// Finds values of the constants that give what is wanted.
  void solve();

  /// Where a wanted tensor could not be had: its name, and why.
  const std::map<std::string, std::string>& failures() const { return failures_; }
  /// Whether one of them is that a constant would have to be two.
  bool has_conflict() const { return has_conflict_; }
  /// The new value of a constant; null where it stays.
  TensorPtr find_new(const TensorPtr& constant) const;
  /// What takes the place of a result that nothing else gives.
  struct Replaced {
    TensorPtr tensor;
    std::string wanted_by;  // the name of what it is for
  };
  /// By the names of the values in the file.
  const std::map<std::string, Replaced>& replaced() const { return replaced_; }
  /// Whether the tensor lies in a constant of the file, or in what was made of some.
  bool knows(const TensorPtr& tensor) const;
  /// The constants that a tensor was made of.
  std::set<const Tensor*> constants_of(const TensorPtr& tensor) const;

 private:
  struct Run {
    const uint8_t* begin = nullptr;
    size_t size = 0;
    const Origin* origin = nullptr;  // null: constants of the file
    size_t result = 0;
    std::vector<const Tensor*> constants;
    TensorPtr before;          // for what was computed
    std::string wanted_by;     // the name of what was put here last; empty: it stays
    Bytes whole;               // the new bytes, where all are given at once
    std::vector<uint8_t> now;  // or else these, where
    std::vector<bool> given;   // the bytes are new
    TensorPtr forward;         // what the new constants give
  };
  struct Wanted {
    std::string name;
    TensorPtr before, now;
  };

  const Run* find_run(const uint8_t* data, size_t size) const;
  Run* find_run(const uint8_t* data, size_t size);
  void put(const Tensor& place, const Bytes& bytes, const std::string& name);
  void put_bytes(const uint8_t* data, size_t size, const Bytes& bytes, const std::string& name);
  void put_equal(const uint8_t* data, size_t size, const Bytes& bytes, const std::string& name);
  void split(Run& run);
  void put_part(const Tensor& place, const std::vector<bool>& is_given, const std::vector<uint8_t>& bytes,
                const std::string& name);
  void clear();
  bool go_back();
  void go_back(Run& run);
  void undo_move(const Run& run, const Tensor& now);
  bool undo_elementwise(const Run& run, const Tensor& now);
  bool is_coarse(const Tensor& tensor) const;
  void replace(const Run& run);
  void go_forward();
  bool agrees(const Wanted& wanted) const;
  TensorPtr now_of(const TensorPtr& tensor) const;
  Tensor wanted_tensor(const Run& run) const;
  bool changes(const Run& run, const Tensor& now) const;
  void fail(const std::string& name, std::string why) { failures_.try_emplace(name, std::move(why)); }

  const Origins* origins_;
  std::map<const uint8_t*, Run> runs_;  // by their beginning; none overlap
  std::vector<Run*> computed_;          // in the order of the notes
  std::vector<Wanted> wanted_;
  std::map<std::string, std::string> failures_;
  std::map<std::string, Replaced> replaced_;
  std::set<const Run*> replaced_runs_;
  std::set<const Run*> coarse_;  // results of integers, which cannot be what is wanted
  bool has_conflict_ = false;
};

}  // namespace tonnx
