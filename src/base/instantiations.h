// Templates of the standard library that nearly every file uses with the same types. They are compiled once, in
// instantiations.cc. This header is part of the precompiled headers; in a build without precompiled headers, each file
// that uses these templates compiles them again.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

extern template class std::basic_string<char>;
extern template class std::vector<std::string>;
extern template class std::set<std::string>;
extern template class std::map<std::string, std::string>;
