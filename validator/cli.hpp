// The command line of ossa-validator.
#pragma once

namespace ossa::validator {

enum ExitCode : int { exit_clean = 0, exit_findings = 1, exit_usage = 2, exit_unreadable = 3, exit_nothing = 4 };

int cli(int argc, char** argv);

}  // namespace ossa::validator
