// tonnx.h - the public C++ interface of tonnx: all of it.
#pragma once
#include <tonnx/batch.h>
#include <tonnx/error.h>
#include <tonnx/model.h>
#include <tonnx/registry.h>
#include <tonnx/verify.h>
