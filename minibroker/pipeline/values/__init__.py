"""From the bytes of a record to typed columns: the wire format of registries, Avro, JSON, Protobuf.

    value bytes ─ wire_format ─► schema id, payload ─ a reader ─► Arrow array of the schema's type
                                                        │
                                                     salvage: bad values alone, each with a reason

Everything here works on Arrow arrays and knows neither Spark nor a registry nor a table.
"""
