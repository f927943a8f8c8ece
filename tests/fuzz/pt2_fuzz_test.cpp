// pt2_fuzz_test.cpp - damaged .pt2 archives: errors are fine, crashes and our own are not.
#include <cstdlib>

#include "base/pickle.h"
#include "checks.h"
#include "formats/pt2/archive.h"
#include "formats/pt2/pt2_files.h"
#include "fuzz/mutate.h"

namespace tonnx {
namespace {

using Parts = std::vector<ZipPart>;

std::vector<Parts> archive_seeds() {
  const std::string numbers(96, '\x3f');
  Parts today = pt2_parts("{\"graph_module\": {}, \"schema_version\": {\"major\": 8, \"minor\": 9}}",
                          payload_table({"\"a.weight\": " + payload("weight_0", 7, "4, 6", "6, 1"),
                                         "\"b.weight\": " + payload("weight_0", 7, "4, 6", "6, 1"),
                                         "\"a.bias\": " + payload("weight_1", 13, "2, 3", "1, 2", "4"),
                                         "\"empty\": " + payload("weight_1", 5, "0", "1", "0", false)}),
                          payload_table({"\"c\": " + payload("tensor_0", 5, "2, 2", "0, 1", "1", false)}));
  today.push_back({"m/data/weights/weight_0", numbers, false, true, false, 0, 9});
  today.push_back({"m/data/weights/weight_1", numbers, true});
  today.push_back({"m/data/constants/tensor_0", numbers, false, false, true});
  today.push_back({"m/extra/note", "text"});
  Parts middle = pt2_parts("{}", "", "");
  middle.push_back({"m/data/weights/model.pt", saved_state_dict(), true});
  middle.push_back({"m/data/constants/model.pt", saved_state_dict()});
  return {today, middle, old_pt2_parts("{}", saved_state_dict(), saved_state_dict())};
}

/// Puts another number, mostly an odd one, in the place of one that stands in the text.
void damage_number(std::string& text, fuzz::Random& random) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::vector<size_t> places;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_digit(text[i]) && (i == 0 || !is_digit(text[i - 1]))) places.push_back(i);
  }
  if (places.empty()) return;
  const size_t at = places[random() % places.size()];
  size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  constexpr const char* kNumbers[] = {
      "0", "1", "2", "5", "7", "11", "100", "-1", "1.5", "4294967296", "9223372036854775807", "99999999999999999999"};
  text.replace(at, end - at, kNumbers[random() % std::size(kNumbers)]);
}

/// Damages the file as a whole, or what is in one entry, with the directory around it kept right.
std::string damaged_file(Parts parts, const std::vector<std::string>& donors, fuzz::Random& random) {
  const unsigned choice = random() % 10;
  const bool wide = random() % 2 == 0;
  if (choice < 3) return fuzz::mutated(make_zip(parts, wide), donors, random);
  ZipPart& part = parts[random() % parts.size()];
  if (choice < 6) {
    damage_number(part.content, random);
  } else if (choice < 7) {
    part.name = fuzz::mutated(part.name, donors, random).substr(0, 200);
  } else {
    part.content = fuzz::mutated(part.content, donors, random);
  }
  return make_zip(parts, wide);
}

/// False where it was refused.
bool read_all(const std::string& file) {
  try {
    const Pt2Archive archive = read_pt2_archive(Bytes::own(file));
    unsigned sum = 0;  // touches every byte
    const auto touch = [&](const Bytes& bytes) {
      for (const char c : bytes.view()) sum += static_cast<unsigned char>(c);
    };
    for (const auto* tensors : {&archive.weights, &archive.constants}) {
      for (const auto& [name, tensor] : *tensors) {
        touch(tensor.tensor->data);
        const auto expected = static_cast<size_t>(byte_size(tensor.tensor->dtype, tensor.tensor->count()));
        EXPECT_EQ(tensor.tensor->data.size(), expected) << name;
      }
    }
    for (const auto& [name, bytes] : archive.extra) touch(bytes);
    touch(archive.program);
    return sum != 0;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) throw;
    return false;
  }
}

TEST(Fuzz, DamagedArchivesGiveErrorsAndNothingWorse) {
  const char* const more = std::getenv("TONNX_FUZZ_ROUNDS");
  const char* const start = std::getenv("TONNX_FUZZ_SEED");
  const char* const keep = std::getenv("TONNX_FUZZ_KEEP");
  const int rounds = more != nullptr ? std::atoi(more) : 8000;
  const unsigned first = start != nullptr ? static_cast<unsigned>(std::atoi(start)) : 1;
  const std::vector<Parts> originals = archive_seeds();
  std::vector<std::string> donors;
  for (const Parts& parts : originals) {
    donors.push_back(make_zip(parts));
    ASSERT_TRUE(read_all(donors.back()));
  }
  int accepted = 0;
  for (int round = 0; round < rounds; ++round) {
    const unsigned seed = first + static_cast<unsigned>(round);
    fuzz::Random random(seed);
    const std::string file = damaged_file(originals[random() % originals.size()], donors, random);
    if (keep != nullptr) write_file(keep, file);  // so that a crash leaves its cause behind
    try {
      accepted += read_all(file);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "TONNX_FUZZ_SEED=" << seed << " TONNX_FUZZ_ROUNDS=1: " << e.what();
    }
  }
  EXPECT_GT(accepted, rounds / 20) << "the damage is so great that nothing is tested";
}

TEST(Fuzz, DamagedPicklesGiveErrorsAndNothingWorse) {
  const std::string zip = saved_state_dict();
  const size_t begin = zip.find("\x80\x02");
  const std::string pickle = zip.substr(begin, zip.find("u.PK", begin) + 2 - begin);
  const std::vector<std::string> donors{pickle, std::string(64, '\x85'),
                                        "](l}(d\x8f(\x90\x91(0123)\x81R\x92s\x94"
                                        "aue"};
  int accepted = 0;
  for (unsigned seed = 1; seed <= 20000; ++seed) {
    fuzz::Random random(seed);
    const std::string damaged = fuzz::mutated(pickle, donors, random);
    try {
      accepted += Pickle(Bytes::own(damaged), "x").size() > 0;
    } catch (const Error& e) {
      EXPECT_NE(e.kind(), ErrorKind::Internal) << "seed " << seed << ": " << e.what();
    }
  }
  EXPECT_GT(accepted, 500);
}

}  // namespace
}  // namespace tonnx
