# SPDX-License-Identifier: Apache-2.0
# Programs of the tests that use an RPC framework as Debian ships it.
FW := $B/frameworks
$(FW)/shop.pb.cc: tests/frameworks/shop.proto
	@mkdir -p $(@D)
	$(call say,PROTOC) protoc -I$(<D) --cpp_out=$(@D) --grpc_out=$(@D) \
	  --plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) $<
$(FW)/Ledger.cpp: tests/frameworks/ledger.thrift
	@mkdir -p $(@D)
	$(call say,THRIFT) thrift --gen cpp -out $(@D) $<
$(FW)/grpc_shop: tests/frameworks/grpc_shop.cc $(FW)/shop.pb.cc
	$(call say,TEST) g++ -O1 -I$(FW) $^ $(FW)/shop.grpc.pb.cc -o $@ -pthread \
	  -lgrpc++ -lgrpc -lgpr -lprotobuf -labsl_synchronization
$(FW)/thrift_ledger: tests/frameworks/thrift_ledger.cc $(FW)/Ledger.cpp
	$(call say,TEST) g++ -O1 -I$(FW) $^ $(FW)/ledger_types.cpp -o $@ -pthread -lthrift
$(FW)/fleet: tests/fleet/fleet.cc tests/fleet/thrift.cc tests/fleet/fleet.hh $(FW)/shop.pb.cc
	$(call say,TEST) g++ -std=c++17 -O1 -I$(FW) $(filter %.cc,$^) -o $@ -pthread \
	  -lgrpc++ -lgrpc -lgpr -lprotobuf -labsl_synchronization -lthrift
frameworks: $(FW)/grpc_shop $(FW)/thrift_ledger $(FW)/fleet
.PHONY: frameworks
