// SPDX-License-Identifier: Apache-2.0
//===- plugin.cpp - adds the pass to the pipeline --------------------------===//
#include "callgraph.h"
#include "instrument.h"
#include "marks.h"
#include "paths.h"

#include "llvm/Analysis/GlobalsModRef.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/TargetSelect.h"

using namespace llvm;

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "quipu", "1", [](PassBuilder &PB) {
                // Facts are written as assembly, and flang does not set up the assembly parser.
                InitializeNativeTargetAsmParser();
                PB.registerPipelineStartEPCallback([](ModulePassManager &MPM, OptimizationLevel) {
                    MPM.addPass(quipu::CallGraphPass());
                    MPM.addPass(quipu::MarkPass());
                });
                PB.registerOptimizerEarlyEPCallback([](ModulePassManager &MPM, OptimizationLevel Level) {
                    MPM.addPass(quipu::InstrumentPass());
                    // Compute GlobalsAA again. With the old result, later passes could move loads over the inserted
                    // calls.
                    if (Level != OptimizationLevel::O0)
                        MPM.addPass(RequireAnalysisPass<GlobalsAA, Module>());
                });
                PB.registerOptimizerLastEPCallback([](ModulePassManager &MPM, OptimizationLevel Level) {
                    MPM.addPass(quipu::InstrumentPass(quipu::InstrumentPass::Late));
                    if (Level != OptimizationLevel::O0)
                        MPM.addPass(createModuleToFunctionPassAdaptor(quipu::PathEdgesPass()));
                });
                PB.registerPipelineParsingCallback(
                    [](StringRef Name, ModulePassManager &MPM, ArrayRef<PassBuilder::PipelineElement>) {
                        if (Name == "quipu-callgraph")
                            MPM.addPass(quipu::CallGraphPass());
                        else if (Name == "quipu-marks")
                            MPM.addPass(quipu::MarkPass());
                        else if (Name == "quipu-path-edges")
                            MPM.addPass(createModuleToFunctionPassAdaptor(quipu::PathEdgesPass()));
                        else if (Name == "quipu")
                            MPM.addPass(quipu::InstrumentPass());
                        else
                            return false;
                        return true;
                    });
            }};
}
