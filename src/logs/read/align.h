// Corrects the times of files that state no year or no zone, by the times of the other files. Pure.
#pragma once

namespace rose::logs {

class Logs;

// Call these while the times of each file are complete but the messages of the files are not merged yet.
void align_years(Logs& logs);
void align_zones(Logs& logs);

}  // namespace rose::logs
