// Templates of the standard library that nearly every file uses with the same types: compiled once, in
// instantiations.cc. Part of the precompiled headers; a build without those compiles them in each file that uses them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

extern template class std::basic_string<char>;
extern template class std::vector<std::string>;
extern template class std::set<std::string>;
extern template class std::map<std::string, std::string>;
