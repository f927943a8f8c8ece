"""The Conan recipe of tonnx: `conan create packaging/conan`; packaging/README.md says what was tried."""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir
from conan.tools.system.package_manager import Apt

required_conan_version = ">=2.0"


class Tonnx(ConanFile):
    name = "tonnx"
    description = "Converts neural networks between ONNX and PyTorch, in both directions"
    license = "Apache-2.0"
    topics = ("onnx", "pytorch", "converter", "torchscript", "safetensors")
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "with_program": [True, False],  # the command line
        "system_libraries": [True, False],  # zlib, yaml-cpp and the headers are those of Debian, and not of Conan
    }
    default_options = {"shared": False, "fPIC": True, "with_program": False, "system_libraries": False}

    def _source_tree(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._source_tree(), "include", "tonnx", "version.h"))
        self.version = ".".join(re.findall(r"#define TONNX_VERSION_\w+ (\d+)$", header, re.MULTILINE))

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "tools/cached_compile.sh"):
            copy(self, pattern, src=self._source_tree(), dst=self.export_sources_folder)

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def validate(self):
        check_min_cppstd(self, 20)

    def requirements(self):
        if self.options.system_libraries:
            return
        self.requires("zlib/[>=1.2.11 <2]")
        self.requires("yaml-cpp/[>=0.7 <1]")
        self.requires("fmt/9.1.0")  # its code is compiled into the library, which is written for this version
        self.requires("protozero/[>=1.7 <2]")
        self.requires("rapidjson/cci.20220822")
        if self.options.with_program:
            self.requires("cli11/[>=2.3 <3]")

    def system_requirements(self):
        if self.options.system_libraries:
            packages = ["zlib1g-dev", "libyaml-cpp-dev", "libfmt-dev", "libprotozero-dev", "rapidjson-dev"]
            Apt(self).check(packages + (["libcli11-dev"] if self.options.with_program else []))

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["TONNX_SHARED"] = bool(self.options.shared)
        toolchain.cache_variables["TONNX_STATIC"] = not self.options.shared
        toolchain.cache_variables["TONNX_PROGRAM"] = bool(self.options.with_program)
        toolchain.cache_variables["TONNX_STATIC_PROGRAM"] = False
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        # Conan makes such files itself, out of package_info
        for folder in ("lib/cmake", "lib/pkgconfig", "share"):
            rmdir(self, os.path.join(self.package_folder, *folder.split("/")))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "tonnx")
        self.cpp_info.set_property("cmake_target_name", "tonnx::tonnx")
        self.cpp_info.set_property("pkg_config_name", "tonnx")
        self.cpp_info.libs = ["tonnx"]
        if not self.options.shared:
            self.cpp_info.system_libs = ["m", "pthread"]
            if self.options.system_libraries:
                self.cpp_info.system_libs = ["yaml-cpp", "z", *self.cpp_info.system_libs]
