// targets.h - what the fuzzers run: for each a name, a sentence and a function that takes any bytes.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace tonnx::fuzz {

/// Errors of the file are fine; an Internal one, any other exception, a crash and a report of a sanitizer are findings.
using TargetFn = void (*)(std::string_view bytes);
/// A damaged copy of the bytes along their own structure, drawn by the seed.
using MutateFn = std::string (*)(const std::string& bytes, const std::string& donor, unsigned seed);

struct Target {
  std::string_view name;
  std::string_view about;
  TargetFn run;
  MutateFn mutate = nullptr;  // null: the fuzzer's own ways are enough
};

std::span<const Target> targets();
/// Null where there is none of that name.
const Target* find_target(std::string_view name);

/// Runs the body, and says whether it went through; an error of the file is swallowed.
bool tried(const std::function<void()>& body);
/// A number that follows from the bytes: the same file takes the same turns each time.
unsigned choice_of(std::string_view bytes);
/// A folder for what is written, which is used over and over.
std::string scratch_file(std::string_view name);

// onnx.cpp
void read_onnx_bytes(std::string_view bytes);
void route_onnx(std::string_view bytes);
/// Everything that is done with a model; false where it was refused.
bool convert_all_ways(const std::string& bytes, unsigned choice);
std::string damaged_message(const std::string& bytes, const std::string& donor, unsigned seed);

// program.cpp
void read_archive(std::string_view bytes);
void route_program(std::string_view json);
/// How many of the two ways, to ONNX and to code, went through.
int convert_program_all_ways(const std::string& json);
std::string damaged_program(const std::string& json, const std::string& donor, unsigned seed);

// containers.cpp
void read_zip(std::string_view bytes);
void read_pickle(std::string_view bytes);
void read_weights(std::string_view bytes);
void read_header(std::string_view bytes);
void read_script_code(std::string_view text);
void read_script_archive(std::string_view bytes);

// texts.cpp
void read_yaml(std::string_view text);
void read_text_form(std::string_view text);
void read_sympy(std::string_view text);
void read_json(std::string_view text);

}  // namespace tonnx::fuzz
