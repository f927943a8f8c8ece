// main.cpp - the program.
#include "cli/commands.h"

int main(int argc, char** argv) { return tonnx::cli::run(argc, argv); }
